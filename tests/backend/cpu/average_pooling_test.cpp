// The kernels of average pooling against a sum written out in float64, for each instruction set
// that the processor has: ranges of any place and length, odd counts of channels, rows with gaps
// between.
#include "backend/cpu/average_pooling.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "backend/channels_last.hpp"
#include "backend/cpu/each_instruction_set.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

class AveragePooling : public EachInstructionSet {
 protected:
  void SetUp() override { at::manual_seed(1); }

  /// Draws outputs that read some of `length` inputs, or none: an output of padding alone.
  std::vector<ReceptiveRange> draw_ranges(int64_t length) {
    std::vector<ReceptiveRange> ranges(dice_.pick(1, 6));
    for (ReceptiveRange& range : ranges) {
      range.begin = dice_.pick(0, length);
      range.end = dice_.pick(range.begin, length);
      range.divisor = static_cast<double>(dice_.pick(1, 9));
    }
    return ranges;
  }

  at::Tensor draw(const std::vector<int64_t>& shape) {
    return at::randn(shape, at::kDouble).to(type()).contiguous(at::MemoryFormat::ChannelsLast);
  }

  /// Draws a tensor that is channels-last, without gaps in its rows; now and then a view of some
  /// rows of something larger.
  at::Tensor draw_input() {
    const int64_t height = dice_.pick(1, 9), more = dice_.pick(0, 2);
    return draw({dice_.pick(1, 3), dice_.pick(1, 40), height + more, dice_.pick(1, 9)})
        .narrow(2, more, height);
  }

  /// Returns what an output takes of each input along an axis: (outputs, inputs).
  static at::Tensor shares(const std::vector<ReceptiveRange>& ranges, int64_t length) {
    at::Tensor all = at::zeros({static_cast<int64_t>(ranges.size()), length}, at::kDouble);
    for (size_t output = 0; output < ranges.size(); ++output)
      for (int64_t input = ranges[output].begin; input < ranges[output].end; ++input)
        all.index_put_({at::tensor(static_cast<int64_t>(output)), at::tensor(input)},
                       at::scalar_tensor(1 / ranges[output].divisor, at::kDouble));
    return all;
  }

  void expect_close(const at::Tensor& result, const at::Tensor& expected) const {
    ASSERT_EQ(result.sizes(), expected.sizes());
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    EXPECT_LE((result.to(at::kDouble) - expected).abs().max().item<double>(), tolerance() * scale);
  }

  Dice dice_{5};
};

TEST_P(AveragePooling, IsTheSumOfWhatEachOutputReadsOverItsDivisors) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw_input();
    const auto rows = draw_ranges(x.size(2)), cols = draw_ranges(x.size(3));
    const at::Tensor y =
        empty_image({x.size(0), x.size(1), std::ssize(rows), std::ssize(cols)}, x.scalar_type());
    average_pool(x, rows, cols, y, set());
    expect_close(y, at::matmul(at::matmul(shares(rows, x.size(2)), x.to(at::kDouble)),
                               shares(cols, x.size(3)).t()));
  }
}

TEST_P(AveragePooling, BackwardIsItsAdjoint) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor dx =
        draw({dice_.pick(1, 3), dice_.pick(1, 40), dice_.pick(1, 9), dice_.pick(1, 9)});
    const auto rows = draw_ranges(dx.size(2)), cols = draw_ranges(dx.size(3));
    const at::Tensor dy = draw({dx.size(0), dx.size(1), std::ssize(rows), std::ssize(cols)});
    average_pool_backward(dy, rows, cols, dx, set());
    expect_close(dx, at::matmul(at::matmul(shares(rows, dx.size(2)).t(), dy.to(at::kDouble)),
                                shares(cols, dx.size(3))));
  }
}

TEST_P(AveragePooling, LeavesOthersToLibtorch) {
  EXPECT_TRUE(has_average_pooling(draw({1, 4, 5, 5})));
  EXPECT_FALSE(has_average_pooling(draw({1, 4, 5, 5}).contiguous()));
  EXPECT_FALSE(has_average_pooling(draw({1, 4, 5, 6}).narrow(1, 0, 3)));  // gaps between pixels
  EXPECT_FALSE(has_average_pooling(draw({1, 4, 5, 5}).to(at::kHalf)));
}

INSTANTIATE_TEST_SUITE_P(All, AveragePooling,
                         each_instruction_set(Precision{at::kDouble, 1e-13},
                                              Precision{at::kFloat, 1e-5},
                                              Precision{at::kBFloat16, 1e-2}),
                         name_of_case);

}  // namespace
}  // namespace mpi4dl::testing
