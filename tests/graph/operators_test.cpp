#include "graph/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace mpi4dl {
namespace {

constexpr int64_t kLength = 9;

// A definition without one of its members is none: Operator, which lists definitions, would not
// compile.
struct WithoutName : Relu {
 private:
  using Relu::kName;
};
struct WithoutProperties : Relu {
 private:
  using Relu::kProperties;
};
struct WithoutResult : Relu {
  Shape result(const Shapes& inputs) const = delete;
};
struct WithoutNeed : Relu {
  Interval need(const Rows& rows) const = delete;
};
struct WithoutParameters : Relu {
  std::vector<Parameter> parameters(const Shapes& inputs) const = delete;
};
struct WithoutFlops : Relu {
  int64_t flops(const NodeWork& work) const = delete;
};
struct WithoutForwardMemory : Relu {
  ForwardMemory forward_memory(const TilePlacement& place) const = delete;
};
struct WithoutBackwardMemory : Relu {
  BackwardMemory backward_memory(const TilePlacement& place) const = delete;
};
template <WindowRule rule>
struct WithWindowRule : Relu {
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = rule};
};
using PadsWithoutWindow = WithWindowRule<WindowRule::zeros>;
struct KernelUnsaid : WithWindowRule<WindowRule::none> {
  Extents kernel;
};
struct WindowUnsaid : WithWindowRule<WindowRule::transposed> {
  Extents kernel;
  Window window(int axis) const;
};
// Others would wait for a tile that has nothing to pool.
struct PoolsAlone : Relu {
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::messages,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
};
struct WithoutWords {
  enum class Way { up, down };
  Way way = Way::up;
  static constexpr std::tuple kFields{Field{"way", &WithoutWords::way}};
};
template <typename... Ops>
constexpr bool kNoneIsDefined = !(OperatorDefinition<Ops> || ...);
static_assert(OperatorDefinition<Relu>);
static_assert(
    kNoneIsDefined<WithoutName, WithoutProperties, WithoutResult, WithoutNeed, WithoutParameters,
                   WithoutFlops, WithoutForwardMemory, WithoutBackwardMemory, PadsWithoutWindow,
                   KernelUnsaid, WindowUnsaid, PoolsAlone>);
static_assert(NamesItsFields<WithoutWords> && !HasWords<WithoutWords> && HasWords<Pad>);
static_assert(HasItsWindow<WithWindowRule<WindowRule::none>>);

// Nor are properties without one of theirs.
template <typename P>
concept Complete = requires {
  P{.pointwise = false,
    .collective = false,
    .pooling = Pooling::none,
    .overlaps_halo = false,
    .window = WindowRule::none};
};
template <typename P>
concept Forgetful = requires {
  P{.collective = false,
    .pooling = Pooling::none,
    .overlaps_halo = false,
    .window = WindowRule::none};
} || requires {
  P{.pointwise = false,
    .pooling = Pooling::none,
    .overlaps_halo = false,
    .window = WindowRule::none};
} || requires {
  P{.pointwise = false, .collective = false, .overlaps_halo = false, .window = WindowRule::none};
} || requires {
  P{.pointwise = false, .collective = false, .pooling = Pooling::none, .window = WindowRule::none};
} || requires {
  P{.pointwise = false, .collective = false, .pooling = Pooling::none, .overlaps_halo = false};
};
static_assert(Complete<Properties> && !Forgetful<Properties>);

/// Returns the inputs that one output reads, by an operator's definition alone.
using Reads = std::function<std::set<int64_t>(int64_t output)>;

Interval around(const std::set<int64_t>& positions) {
  if (positions.empty()) return {};
  return {*positions.begin(), *positions.rbegin() + 1};
}

/// Checks an operator on all intervals of outputs against what their outputs read one by one.
template <typename Check>
void for_all_outputs(const Operator& op, int64_t outputs, const Reads& reads, Check&& check) {
  for (int64_t begin = 0; begin < outputs; ++begin) {
    std::set<int64_t> inputs;
    for (int64_t end = begin + 1; end <= outputs; ++end) {
      inputs.merge(reads(end - 1));
      check(needed_rows(op, {0, {begin, end}, kLength}), around(inputs));
    }
  }
}

void expect_exact(const Operator& op, int64_t outputs, const Reads& reads) {
  for_all_outputs(op, outputs, reads, [&](const Interval& needed, const Interval& read) {
    ASSERT_EQ(needed.begin, read.begin) << kind(op);
    ASSERT_EQ(needed.end, read.end) << kind(op);
  });
}

template <typename Check>
void for_all_options(Check&& check) {
  for (int64_t kernel = 1; kernel <= 4; ++kernel)
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t padding = 0; padding <= 3; ++padding)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
          check(kernel, stride, padding, dilation);
}

int64_t output_rows(const Operator& op) {
  return result_shape(op, {{.channels = 1, .space = {kLength, 40}}}).space[0];
}

Reads window_reads(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return [=](int64_t output) {
    std::set<int64_t> inputs;
    for (int64_t tap = 0; tap < kernel; ++tap)
      inputs.insert(output * stride - padding + tap * dilation);
    return inputs;
  };
}

TEST(NeededRows, OfWindowsAreThoseTheTapsRead) {
  for_all_options([](int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    if (dilation * (kernel - 1) + 1 > kLength + 2 * padding) return;
    const Reads reads = window_reads(kernel, stride, padding, dilation);
    const Convolution conv{.kernel = {kernel, 1},
                           .stride = {stride, 1},
                           .padding = {padding, 0},
                           .dilation = {dilation, 1}};
    expect_exact(conv, output_rows(conv), reads);
    if (2 * padding > kernel) return;
    const MaxPool max{.kernel = {kernel, 1},
                      .stride = {stride, 1},
                      .padding = {padding, 0},
                      .dilation = {dilation, 1},
                      .ceil_mode = true};
    expect_exact(max, output_rows(max), reads);
    if (dilation > 1) return;
    const AvgPool average{.kernel = {kernel, 1}, .stride = {stride, 1}, .padding = {padding, 0}};
    expect_exact(average, output_rows(average), reads);
  });
}

TransposedConvolution transposed(int64_t kernel, int64_t stride, int64_t padding,
                                 int64_t dilation) {
  return {.kernel = {kernel, 1},
          .stride = {stride, 1},
          .padding = {padding, 0},
          .dilation = {dilation, 1},
          .output_padding = {stride - 1, 0}};
}

/// Returns the inputs whose taps write this output.
Reads transposed_reads(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return [=](int64_t output) {
    std::set<int64_t> inputs;
    for (int64_t input = 0; input < kLength; ++input)
      for (int64_t tap = 0; tap < kernel; ++tap)
        if (input * stride - padding + tap * dilation == output) inputs.insert(input);
    return inputs;
  };
}

TEST(NeededRows, OfTransposedConvolutionAreThoseThatReachTheOutputs) {
  for_all_options([](int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    if (dilation > 1) return;
    const Operator op = transposed(kernel, stride, padding, dilation);
    expect_exact(op, output_rows(op), transposed_reads(kernel, stride, padding, dilation));
  });
}

TEST(NeededRows, OfDilatedTransposedConvolutionMissNoInputAndStayInside) {
  for_all_options([](int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    const Operator op = transposed(kernel, stride, padding, dilation);
    for_all_outputs(op, output_rows(op), transposed_reads(kernel, stride, padding, dilation),
                    [](const Interval& needed, const Interval& read) {
                      ASSERT_TRUE(needed.contains(read));
                      ASSERT_TRUE((Interval{0, kLength}).contains(needed));
                    });
  });
}

TEST(NeededRows, OfAdaptivePoolingAreThoseOfItsWindows) {
  for (int64_t size = 1; size <= 2 * kLength + 1; ++size) {
    const Operator op = AdaptiveAvgPool{{size, 3}};
    expect_exact(op, size, [size](int64_t output) {
      std::set<int64_t> inputs;
      for (int64_t input = 0; input < kLength; ++input)
        if ((input + 1) * size > output * kLength && input * size < (output + 1) * kLength)
          inputs.insert(input);
      return inputs;
    });
  }
}

TEST(NeededRows, OfWindowsWithOtherPaddingAtTheEndAreThoseTheTapsRead) {
  for (int64_t padding = 0; padding <= 3; ++padding)
    for (int64_t end = 0; end <= 3; ++end) {
      const Convolution op{.kernel = {3, 1}, .padding = {padding, 0}, .padding_end = {end, 0}};
      EXPECT_EQ(output_rows(op), kLength - 2 + padding + end);
      expect_exact(op, output_rows(op), window_reads(3, 1, padding, 1));
    }
}

TEST(NeededRows, OfNearestResizingAreTheRowsCopied) {
  for (int64_t factor = 1; factor <= 5; ++factor)
    expect_exact(Resize{.factor = {static_cast<double>(factor), 1}}, factor * kLength,
                 [=](int64_t output) { return std::set<int64_t>{output / factor}; });
}

/// Returns the inputs around the place of an output, `taps` / 2 on either side.
Reads reads_around(const std::function<double(int64_t)>& place, int64_t taps) {
  return [=](int64_t output) {
    const auto below = static_cast<int64_t>(std::floor(place(output)));
    std::set<int64_t> inputs;
    for (int64_t tap = 1 - taps / 2; tap <= taps / 2; ++tap)
      inputs.insert(std::clamp<int64_t>(below + tap, 0, kLength - 1));
    return inputs;
  };
}

const std::vector<Operator> kPointwise{
    BatchNorm{},      GroupNorm{},      Relu{},        Add{},          Concat{}, Dropout{},
    Identity{},       Pointwise{},      Elementwise{}, ChannelScale{}, PRelu{},  ChannelNorm{},
    ChannelSoftmax{}, ChannelShuffle{}, ChannelPad{}};

TEST(NeededRows, OfPointwiseOperatorsAreTheOutputs) {
  for (const Operator& op : kPointwise)
    expect_exact(op, kLength, [](int64_t output) { return std::set<int64_t>{output}; });
}

TEST(NeededRows, OfInterpolationAreTheRowsOnBothSides) {
  for (const Interpolation mode : {Interpolation::bilinear, Interpolation::bicubic})
    for (const int64_t length : {2, 5, 13, 18, 27, 45}) {
      const int64_t taps = mode == Interpolation::bilinear ? 2 : 4;
      const double step = static_cast<double>(kLength) / static_cast<double>(length);
      expect_exact(Resize{.space = {length, 1}, .mode = mode}, length,
                   reads_around(
                       [=](int64_t output) {
                         const double place = (output + 0.5) * step - 0.5;
                         return taps == 2 ? std::max(place, 0.0) : place;
                       },
                       taps));
    }
}

TEST(NeededRows, OfInterpolationBetweenCornersReachFromTheFirstToTheLast) {
  const Resize op{.space = {17, 1}, .mode = Interpolation::bilinear, .align_corners = true};
  expect_exact(op, 17, reads_around([](int64_t output) { return output / 2.0; }, 2));
}

TEST(NeededRows, OfPaddingAreTheRowsThatAreRepeated) {
  const int64_t before = 3, after = 2;
  const auto expect = [&](PadMode mode, const std::function<int64_t(int64_t)>& source) {
    expect_exact(Pad{.before = {before, 0}, .after = {after, 0}, .mode = mode},
                 before + kLength + after,
                 [&](int64_t output) { return std::set{source(output - before)}; });
  };
  expect(PadMode::reflect,
         [](int64_t i) { return kLength - 1 - std::abs(kLength - 1 - std::abs(i)); });
  expect(PadMode::replicate, [](int64_t i) { return std::clamp<int64_t>(i, 0, kLength - 1); });
  expect(PadMode::circular, [](int64_t i) { return (i + kLength) % kLength; });
}

TEST(NeededRows, OfConstantPaddingAreInside) {
  const Pad op{.before = {2, -3}, .after = {3, 4}};
  EXPECT_TRUE(needed_rows(op, {0, {0, 2}, kLength}).empty());
  EXPECT_TRUE(needed_rows(op, {0, {11, 14}, kLength}).empty());
  EXPECT_EQ(needed_rows(op, {0, {1, 5}, kLength}), (Interval{0, 3}));
  EXPECT_EQ(needed_rows(op, {1, {1, 10}, kLength}), (Interval{4, 9}));
}

TEST(NeededRows, OfPixelShufflesAreTheSquares) {
  EXPECT_EQ(needed_rows(PixelShuffle{.factor = 3}, {0, {2, 7}, kLength}), (Interval{0, 3}));
  EXPECT_EQ(needed_rows(PixelUnshuffle{.factor = 3}, {0, {1, 2}, kLength}), (Interval{3, 6}));
}

TEST(NeededRows, OfNothingAreNothing) {
  const Operator conv = Convolution{.kernel = {3, 3}, .padding = {1, 1}};
  for (const Operator& op :
       {conv, Operator{transposed(3, 2, 1, 1)}, Operator{Resize{.factor = {2, 2}}},
        Operator{Relu{}}, Operator{Flatten{}}})
    EXPECT_TRUE(needed_rows(op, {0, {4, 4}, kLength}).empty()) << kind(op);
}

TEST(NeededRows, FollowEachAxisOfItsOwn) {
  const Operator conv = Convolution{.kernel = {1, 7, 3}, .stride = {1, 1, 2}, .padding = {0, 3, 1}};
  EXPECT_EQ(needed_rows(conv, {0, {2, 4}, 20}), (Interval{2, 4}));
  EXPECT_EQ(needed_rows(conv, {1, {2, 4}, 20}), (Interval{-1, 7}));
  EXPECT_EQ(needed_rows(conv, {2, {2, 4}, 20}), (Interval{3, 8}));
}

TEST(Pointwise, IsTrueOfThoseOperatorsAlone) {
  for (const Operator& op : kPointwise) EXPECT_TRUE(properties(op).pointwise) << kind(op);
  const std::vector<Operator> others{Convolution{.kernel = {3, 3}},
                                     TransposedConvolution{.kernel = {2, 2}},
                                     MaxPool{.kernel = {2, 2}},
                                     AvgPool{.kernel = {2, 2}},
                                     GlobalAvgPool{},
                                     Resize{},
                                     Pad{},
                                     PixelShuffle{},
                                     PixelUnshuffle{},
                                     Flatten{},
                                     Linear{}};
  for (const Operator& op : others) EXPECT_FALSE(properties(op).pointwise) << kind(op);
}

TEST(Windows, HaveDefaultsWhereNothingIsGiven) {
  EXPECT_EQ(windows(Convolution{.kernel = {5, 3}}, 2), (std::vector<Window>{{5}, {3}}));
  EXPECT_EQ(windows(MaxPool{.kernel = {2, 3}}, 2), (std::vector<Window>{{2, 2}, {3, 3}}));
  EXPECT_EQ(windows(AvgPool{.kernel = {2, 3}}, 2), (std::vector<Window>{{2, 2}, {3, 3}}));
}

TEST(Windows, BelongToConvolutionAndPoolingOnly) {
  EXPECT_TRUE(windows(Relu{}, 2).empty());
  EXPECT_TRUE(windows(TransposedConvolution{.kernel = {2, 2}}, 2).empty());
}

}  // namespace
}  // namespace mpi4dl
