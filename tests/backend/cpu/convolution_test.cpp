// The kernels of convolutions against libtorch's in float64, for each instruction set that the
// processor has: random windows, odd sizes and counts of channels, different padding on each side,
// views with gaps, several threads.
#include "backend/cpu/convolution.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "backend/cpu/each_instruction_set.hpp"
#include "backend/cpu/image.hpp"
#include "backend/cpu/weight_gradient.hpp"
#include "base/error.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

class ConvolutionKernels : public EachInstructionSet {
 protected:
  void SetUp() override { at::manual_seed(1); }

  struct Case {
    ImageWindows windows;
    std::array<int64_t, 2> after;  // padding behind the input
    at::Tensor x, weight, bias, dy;
    int64_t groups = 1;
  };

  static at::Tensor wide(const at::Tensor& x) {
    return x.defined() ? x.to(at::kDouble) : at::Tensor();
  }

  /// Draws a tensor that is channels-last; now and then a view into something larger.
  at::Tensor draw(const std::vector<int64_t>& shape) {
    std::vector<int64_t> larger = shape;
    if (dice_.chance(0.5))
      for (int64_t& length : larger) length += dice_.pick(0, 2);
    at::Tensor x = at::randn({larger[0], larger[2], larger[3], larger[1]}, at::kDouble)
                       .to(type())
                       .permute({0, 3, 1, 2});
    for (size_t axis = 0; axis < shape.size(); ++axis)
      x = x.narrow(static_cast<int64_t>(axis), larger[axis] - shape[axis], shape[axis]);
    return x;
  }

  int64_t draw_channels() { return dice_.chance(0.3) ? 16 * dice_.pick(1, 4) : dice_.pick(1, 37); }

  Case draw_case() {
    Case c;
    std::vector<int64_t> inputs{dice_.pick(1, 3), draw_channels()},
        outputs{inputs[0], draw_channels()};
    if (dice_.chance(0.3)) {
      c.groups = outputs[1] = inputs[1];  // depthwise
    } else if (dice_.chance(0.3)) {
      c.groups = dice_.pick(2, 4);
      inputs[1] = c.groups * dice_.pick(8, 20);
      outputs[1] = c.groups * dice_.pick(8, 20);
    }
    std::vector<int64_t> weights{outputs[1], inputs[1] / c.groups};
    for (int axis = 0; axis < 2; ++axis) {
      Window& window = c.windows[axis];
      window = {dice_.pick(1, dice_.chance(0.1) ? 7 : 3), dice_.pick(1, 3), 0, dice_.pick(1, 2)};
      window.padding = dice_.pick(0, window.span());
      c.after[axis] = dice_.pick(0, window.span());
      const int64_t least = std::max<int64_t>(1, window.span() - window.padding - c.after[axis]);
      const int64_t length = least + dice_.pick(0, dice_.chance(0.1) ? 100 : 14);
      inputs.push_back(length);
      outputs.push_back((length + window.padding + c.after[axis] - window.span()) / window.stride +
                        1);
      weights.push_back(window.kernel);
    }
    c.x = draw(inputs);
    c.dy = draw(outputs);
    c.weight = at::randn(weights, at::kDouble).to(type());
    if (dice_.chance(0.7)) c.weight = c.weight.contiguous(at::MemoryFormat::ChannelsLast);
    if (dice_.chance(0.3)) c.bias = at::randn({outputs[1]}, at::kDouble).to(type());
    return c;
  }

  static at::Tensor padded(const Case& c) {
    return at::constant_pad_nd(
        wide(c.x), {c.windows[1].padding, c.after[1], c.windows[0].padding, c.after[0]});
  }
  static std::vector<int64_t> strides(const Case& c) {
    return {c.windows[0].stride, c.windows[1].stride};
  }
  static std::vector<int64_t> dilations(const Case& c) {
    return {c.windows[0].dilation, c.windows[1].dilation};
  }

  void expect_close(const at::Tensor& result, const at::Tensor& expected) const {
    ASSERT_EQ(result.sizes(), expected.sizes());
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    EXPECT_LE((wide(result) - expected).abs().max().item<double>(), tolerance() * scale);
  }

  void expect_equal_to_libtorch(const Case& c) {
    const at::Tensor y = draw(c.dy.sizes().vec()), dx = draw(c.x.sizes().vec());
    const at::Tensor expected = at::convolution(padded(c), wide(c.weight), wide(c.bias), strides(c),
                                                {0, 0}, dilations(c), false, {0, 0}, c.groups);
    convolve(c.x, c.weight, c.bias, c.windows, {}, y, set());
    expect_close(y, expected);
    const at::Tensor residual =
        dice_.chance(0.8) ? draw(c.dy.sizes().vec()) : draw(c.dy.sizes().vec()).contiguous();
    convolve(c.x, c.weight, c.bias, c.windows, residual, y, set());
    expect_close(y, expected + wide(residual));
    const auto [whole, weight, unused] = at::convolution_backward(
        wide(c.dy), padded(c), wide(c.weight), c10::nullopt, strides(c), {0, 0}, dilations(c),
        false, {0, 0}, c.groups, {true, true, false});
    convolve_backward_data(c.dy, c.weight, c.windows, dx, set());
    expect_close(dx, whole.narrow(2, c.windows[0].padding, c.x.size(2))
                         .narrow(3, c.windows[1].padding, c.x.size(3)));
    const at::Tensor before = at::randn(c.weight.sizes(), at::kDouble)
                                  .to(type() == at::kDouble ? at::kDouble : at::kFloat)
                                  .contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor sums = before.clone();
    accumulate_weight_gradient(c.x, c.dy, c.windows, sums, set());
    expect_close(sums, weight + wide(before));
  }

  Dice dice_{11};
};

// Of which only a part is packed at a time.
TEST_P(ConvolutionKernels, EqualLibtorchWithLargeWeights) {
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{256, 130}, {70, 512}}) {
    Case c{.windows = {Window{3, 1, 1, 1}, Window{3, 2, 1, 1}},
           .after = {1, 1},
           .x = draw({2, in, 5, 7}),
           .weight = at::randn({out, in, 3, 3}, at::kDouble).to(type()),
           .bias = {},
           .dy = draw({2, out, 5, 4})};
    expect_equal_to_libtorch(c);
  }
}

TEST_P(ConvolutionKernels, EqualLibtorch) {
  const auto trials = static_cast<int64_t>(seeds(150).size());
  for (int64_t trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    expect_equal_to_libtorch(draw_case());
    if (HasFailure()) return;
  }
}

// Values of a pixel are read once for several taps, and taps are taken together.
TEST_P(ConvolutionKernels, EqualLibtorchWithNeighbouringTaps) {
  for (const int64_t out : {5, 16, 24, 32, 40, 48, 64})
    for (const int64_t kernel : {3, 5, 7}) {
      SCOPED_TRACE(::testing::Message() << out << " channels through " << kernel << " taps");
      const int64_t in = dice_.pick(1, 40), width = dice_.pick(1, 30);
      Case c{.windows = {Window{2, 1, 1, 1}, Window{kernel, 1, kernel / 2, 1}},
             .after = {0, kernel / 2},
             .x = at::randn({2, 6, width, in}, at::kDouble).to(type()).permute({0, 3, 1, 2}),
             .weight = at::randn({out, in, 2, kernel}, at::kDouble).to(type()),
             .bias = {},
             .dy = draw({2, out, 6, width})};
      expect_equal_to_libtorch(c);
    }
}

// More rows than are converted at a time.
TEST_P(ConvolutionKernels, EqualLibtorchWithManyRows) {
  for (const int64_t stride : {1, 2}) {
    Case c{.windows = {Window{3, stride, 1, 1}, Window{3, stride, 1, 1}},
           .after = {1, 1},
           .x = draw({2, 64, 60, 70}),
           .weight = at::randn({20, 64, 3, 3}, at::kDouble).to(type()),
           .bias = {},
           .dy = draw({2, 20, 60 / stride, 70 / stride})};
    expect_equal_to_libtorch(c);
  }
}

// Pixels a power of two apart are copied with larger gaps between them, some rows at a time. They
// may have fewer channels than lie between them: 80 is as far apart as copies of 64 float32 are.
TEST_P(ConvolutionKernels, EqualLibtorchWithPixelsThatAreSpread) {
  const auto some_of = [&](int64_t channels, int64_t pitch, int64_t height) {
    return at::randn({2, height, 33, pitch}, at::kDouble)
        .to(type())
        .permute({0, 3, 1, 2})
        .narrow(1, 0, channels);
  };
  for (const auto& [channels, pitch] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {64, 80}, {96, 128}, {128, 128}}) {
    SCOPED_TRACE(::testing::Message() << channels << " channels of " << pitch);
    Case c{.windows = {Window{3, 1, 1, 1}, Window{3, 1, 1, 1}},
           .after = {1, 1},
           .x = some_of(channels, pitch, 40),
           .weight = at::randn({64, channels, 3, 3}, at::kDouble).to(type()),
           .bias = {},
           .dy = some_of(64, pitch, 40)};
    expect_equal_to_libtorch(c);
  }
}

TEST_P(ConvolutionKernels, EqualLibtorchOnSeveralThreads) {
  const int before = at::get_num_threads();
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    Case c;
    c.windows = {Window{3, 1, 1, 1}, Window{3, 1, 1, 1}};
    c.after = {1, 1};
    c.x = draw({2, 48, 40, 33});
    c.dy = draw({2, 64, 40, 33});
    c.weight = at::randn({64, 48, 3, 3}, at::kDouble).to(type());
    expect_equal_to_libtorch(c);
  }
  at::set_num_threads(before);
}

/// Outputs that lie outside the image wholly are the bias.
TEST_P(ConvolutionKernels, PaddingAloneGivesTheBias) {
  const at::Tensor x = at::empty(
      {1, 3, 0, 5}, at::TensorOptions(type()).memory_format(at::MemoryFormat::ChannelsLast));
  const at::Tensor weight = draw({4, 3, 2, 2}), bias = draw({1, 4, 1, 1}).view({4});
  const at::Tensor y = draw({1, 4, 2, 4});
  convolve(x, weight, bias, {Window{2, 1, 3, 1}, Window{2, 1, 0, 1}}, {}, y, set());
  expect_close(y, wide(bias).view({1, 4, 1, 1}).expand({1, 4, 2, 4}));
}

TEST_P(ConvolutionKernels, LeaveOthersToLibtorch) {
  const at::Tensor x = draw({1, 4, 5, 5});
  const at::Tensor weight = draw({4, 4, 3, 3});
  EXPECT_TRUE(has_convolution_kernel(x, weight, weight.size(0), 1, set()) ||
              has_avx512_bf16(set()));
  EXPECT_FALSE(has_convolution_kernel(x, weight, weight.size(0), 2, set()));
  EXPECT_FALSE(has_convolution_kernel(x.contiguous(), weight, weight.size(0), 1, set()));
  EXPECT_FALSE(
      has_convolution_kernel(x.unsqueeze(2), weight.unsqueeze(2), weight.size(0), 1, set()));
  EXPECT_FALSE(
      has_convolution_kernel(x.to(at::kHalf), weight.to(at::kHalf), weight.size(0), 1, set()));
}

// Where preconditions cost nothing, a caller that breaks one is on its own.
TEST(KernelPreconditions, AreCheckedInDebugBuilds) {
  const at::Tensor planes = at::zeros({1, 2, 3, 3});  // not channels-last
  if constexpr (kChecked) {
    EXPECT_THROW(Image<float>{planes}, Error);
  } else {
    EXPECT_NO_THROW(Image<float>{planes});
  }
}

TEST(KernelPreconditions, SumsAreThoseOfTheWeight) {
  if (!kChecked) GTEST_SKIP() << "promises are checked in Debug and sanitizer builds";
  const auto image = [](int64_t channels) {
    return at::zeros({1, channels, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  };
  const WeightGradientKernel& kernel =
      choose_weight_gradient_kernel(at::kFloat, InstructionSet::sse2);
  const ImageWindows windows{Window{.kernel = 1}, Window{.kernel = 1}};
  const at::Tensor sums = at::zeros({4, 2, 1, 1}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_NO_THROW(kernel.accumulate(image(2), image(4), windows, sums, kernel.set));
  EXPECT_THROW(kernel.accumulate(image(3), image(4), windows, sums, kernel.set), Error);
  EXPECT_THROW(kernel.accumulate(image(2), image(5), windows, sums, kernel.set), Error);
  EXPECT_THROW(kernel.accumulate(image(2), image(4), windows, sums.to(at::kDouble), kernel.set),
               Error);
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionKernels,
                         each_instruction_set(Precision{at::kFloat, 1e-5},
                                              Precision{at::kDouble, 1e-13},
                                              Precision{at::kBFloat16, 1e-2}),
                         name_of_case);

}  // namespace
}  // namespace mpi4dl::testing
