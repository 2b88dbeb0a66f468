// The kernels of batch norm and ReLU against compositions of libtorch's operators in float64, for
// each instruction set that the processor has: random shapes, odd counts of channels, images,
// volumes and vectors, views with gaps, several threads.
#include "backend/cpu/cpu_backend.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "backend/cpu/each_instruction_set.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

class Normalisation : public EachInstructionSet {
 protected:
  void SetUp() override { at::manual_seed(1); }

  std::vector<int64_t> draw_shape() {
    const int axes = static_cast<int>(dice_.pick(0, 3));
    const int64_t largest = dice_.chance(0.2) ? 17 : 7;
    std::vector<int64_t> shape{dice_.pick(1, 3),
                               dice_.chance(0.2) ? 8 * dice_.pick(1, 40) : dice_.pick(1, 70)};
    for (int axis = 0; axis < axes; ++axis) shape.push_back(dice_.pick(1, largest));
    return shape;
  }

  /// Draws a tensor that is channels-last; now and then a view into something larger.
  at::Tensor draw(std::vector<int64_t> shape, double offset = 0) {
    std::vector<int64_t> larger = shape;
    if (dice_.chance(0.5))
      for (int64_t& length : larger) length += dice_.pick(0, 2);
    std::vector<int64_t> last{larger[0]};
    last.insert(last.end(), larger.begin() + 2, larger.end());
    last.push_back(larger[1]);
    at::Tensor x = (at::randn(last, at::kDouble) + offset).to(type()).movedim(-1, 1);
    for (size_t axis = 0; axis < shape.size(); ++axis)
      x = x.narrow(static_cast<int64_t>(axis), larger[axis] - shape[axis], shape[axis]);
    return x;
  }

  ChannelMap draw_map(int64_t channels) {
    const auto noise = [&] { return at::randn({channels}, at::kDouble); };
    return {at::stack({noise() * 0.1, noise().abs() + 0.5, noise(), noise()}), dice_.chance(0.5)};
  }

  static at::Tensor draw_means(int64_t channels) { return at::randn({2, channels}, at::kDouble); }

  static at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble); }

  void expect_close(const at::Tensor& result, const at::Tensor& expected) const {
    ASSERT_EQ(result.sizes(), expected.sizes());
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    EXPECT_LE((wide(result) - expected).abs().max().item<double>(), tolerance() * scale);
  }

  Dice dice_{7};
  const CpuBackend kernels_{set()};
  const ComposedBackend composed_{at::kCPU};
};

TEST_P(Normalisation, MomentsOfEachChannel) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw(draw_shape(), trial % 3 == 0 ? 100 : 0);
    const at::Tensor moments = kernels_.channel_moments(x),
                     expected = composed_.channel_moments(wide(x));
    for (int column = 0; column < 3; ++column)
      expect_close(moments.select(1, column), expected.select(1, column));
  }
}

TEST_P(Normalisation, SumsOfEachChannel) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw(draw_shape(), trial % 3 == 0 ? 100 : 0);
    expect_close(kernels_.channel_sums(x), composed_.channel_sums(wide(x)));
  }
}

TEST_P(Normalisation, Forward) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw(draw_shape()), y = draw(x.sizes().vec());
    const ChannelMap map = draw_map(x.size(1));
    const at::Tensor residual = dice_.chance(0.5) ? draw(x.sizes().vec()) : at::Tensor();
    kernels_.normalise(x, map, residual, y);
    const at::Tensor expected = at::empty(x.sizes(), at::kDouble);
    composed_.normalise(wide(x), map, residual.defined() ? wide(residual) : residual, expected);
    expect_close(y, expected);
  }
}

TEST_P(Normalisation, GradientSums) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw(draw_shape()), dy = draw(x.sizes().vec());
    const ChannelMap map = draw_map(x.size(1));
    expect_close(kernels_.gradient_sums(dy, x, map),
                 composed_.gradient_sums(wide(dy), wide(x), map));
  }
}

TEST_P(Normalisation, Backward) {
  for (int trial = 0; trial < 60; ++trial) {
    const at::Tensor x = draw(draw_shape()), dy = draw(x.sizes().vec());
    const ChannelMap map = draw_map(x.size(1));
    const at::Tensor means = dice_.chance(0.7) ? draw_means(x.size(1)) : at::Tensor();
    const at::Tensor expected = at::empty(x.sizes(), at::kDouble);
    composed_.normalise_backward(wide(dy), wide(x), map, means, expected);
    const at::Tensor dx = dice_.chance(0.5) ? dy : draw(x.sizes().vec());
    kernels_.normalise_backward(dy, x, map, means, dx);
    expect_close(dx, expected);
  }
}

/// Another memory layout gives the same, through libtorch's operators.
TEST_P(Normalisation, ChannelsApart) {
  const auto noise = [] { return at::randn({2, 5, 6, 7}, at::kDouble).to(type()); };
  const auto last = [](const at::Tensor& x) {
    return x.contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor x = noise(), dy = noise();
  const at::Tensor means = draw_means(5);
  const at::Tensor y = noise(), y_last = last(noise()), dx = noise(), dx_last = last(noise());
  ChannelMap map = draw_map(5);
  map.relu = true;
  for (const at::Tensor& residual : {at::Tensor(), noise()}) {
    kernels_.normalise(x, map, residual, y);
    kernels_.normalise(last(x), map, residual, y_last);
    expect_close(y, wide(y_last));
    if (residual.defined()) kernels_.normalise(last(x), map, last(residual), y_last);
    expect_close(y, wide(y_last));
  }
  kernels_.normalise_backward(dy, x, map, means, dx);
  kernels_.normalise_backward(last(dy), last(x), map, means, dx_last);
  expect_close(dx, wide(dx_last));
  expect_close(kernels_.channel_moments(x), kernels_.channel_moments(last(x)));
  expect_close(kernels_.channel_sums(x), kernels_.channel_sums(last(x)));
  expect_close(kernels_.gradient_sums(dy, x, map), kernels_.gradient_sums(last(dy), last(x), map));
}

/// An expanded gradient, as global pooling returns it, has strides of zero.
TEST_P(Normalisation, ReadsExpandedGradients) {
  const at::Tensor x = draw({2, 6, 5, 4});
  const at::Tensor dy = at::randn({2, 6, 1, 1}, at::kDouble).to(type()).expand({2, 6, 5, 4});
  const ChannelMap map = draw_map(6);
  expect_close(kernels_.gradient_sums(dy, x, map), composed_.gradient_sums(wide(dy), wide(x), map));
}

TEST_P(Normalisation, ValuesThatAreNotNumbersStaySo) {
  const at::Tensor x = at::full({1, 3, 2, 2}, NAN, at::TensorOptions(type()))
                           .contiguous(at::MemoryFormat::ChannelsLast);
  ChannelMap map = draw_map(3);
  map.relu = true;
  const at::Tensor y = at::zeros_like(x);
  kernels_.normalise(x, map, {}, y);
  EXPECT_TRUE(y.isnan().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, Normalisation,
                         each_instruction_set(Precision{at::kDouble, 1e-12},
                                              Precision{at::kFloat, 2e-5},
                                              Precision{at::kBFloat16, 1e-2}),
                         name_of_case);

/// Far from zero the variance keeps its digits, and threads only change the last ones.
TEST(Moments, KeepTheirDigitsOnAnyNumberOfThreads) {
  at::manual_seed(3);
  const at::Tensor x = (at::randn({2, 24, 61, 67}, at::kDouble) + 1000)
                           .to(at::kFloat)
                           .contiguous(at::MemoryFormat::ChannelsLast);
  const CpuBackend kernels;
  const at::Tensor expected = ComposedBackend(at::kCPU).channel_moments(x.to(at::kDouble));
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    EXPECT_LE((kernels.channel_moments(x) / expected - 1).abs().max().item<double>(), 1e-6);
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace mpi4dl::testing
