#include "graph/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace mpi4dl {
namespace {

constexpr int64_t kLength = 9;

/// The inputs that one output reads, by an operator's definition alone.
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
      check(needed_rows(op, 0, 2, {begin, end}, kLength), around(inputs));
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

/// The inputs whose taps write this output.
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

TEST(NeededRows, OfNearestUpsamplingAreTheRowsCopied) {
  for (int64_t factor = 1; factor <= 5; ++factor)
    expect_exact(Upsample{.factor = factor}, factor * kLength,
                 [=](int64_t output) { return std::set<int64_t>{output / factor}; });
}

TEST(NeededRows, OfBilinearUpsamplingAreTheRowsOnBothSides) {
  for (int64_t factor = 1; factor <= 5; ++factor)
    expect_exact(Upsample{.factor = factor, .mode = Interpolation::bilinear}, factor * kLength,
                 [=](int64_t output) {
                   const double place = (output + 0.5) / factor - 0.5;
                   const auto below = static_cast<int64_t>(std::floor(place));
                   return std::set<int64_t>{std::clamp<int64_t>(below, 0, kLength - 1),
                                            std::clamp<int64_t>(below + 1, 0, kLength - 1)};
                 });
}

const std::vector<Operator> kPointwise{BatchNorm{}, GroupNorm{}, Relu{},    Add{},
                                       Concat{},    Dropout{},   Identity{}};

TEST(NeededRows, OfPointwiseOperatorsAreTheOutputs) {
  for (const Operator& op : kPointwise)
    expect_exact(op, kLength, [](int64_t output) { return std::set<int64_t>{output}; });
}

TEST(NeededRows, OfNothingAreNothing) {
  const Operator conv = Convolution{.kernel = {3, 3}, .padding = {1, 1}};
  for (const Operator& op : {conv, Operator{transposed(3, 2, 1, 1)}, Operator{Upsample{}},
                             Operator{Relu{}}, Operator{Flatten{}}})
    EXPECT_TRUE(needed_rows(op, 0, 2, {4, 4}, kLength).empty()) << kind(op);
}

TEST(NeededRows, FollowEachAxisOfItsOwn) {
  const Operator conv = Convolution{.kernel = {1, 7, 3}, .stride = {1, 1, 2}, .padding = {0, 3, 1}};
  EXPECT_EQ(needed_rows(conv, 0, 3, {2, 4}, 20), (Interval{2, 4}));
  EXPECT_EQ(needed_rows(conv, 1, 3, {2, 4}, 20), (Interval{-1, 7}));
  EXPECT_EQ(needed_rows(conv, 2, 3, {2, 4}, 20), (Interval{3, 8}));
}

TEST(Pointwise, IsTrueOfThoseOperatorsAlone) {
  for (const Operator& op : kPointwise) EXPECT_TRUE(pointwise(op)) << kind(op);
  const std::vector<Operator> others{Convolution{.kernel = {3, 3}},
                                     TransposedConvolution{.kernel = {2, 2}},
                                     MaxPool{.kernel = {2, 2}},
                                     AvgPool{.kernel = {2, 2}},
                                     GlobalAvgPool{},
                                     Upsample{},
                                     Flatten{},
                                     Linear{}};
  for (const Operator& op : others) EXPECT_FALSE(pointwise(op)) << kind(op);
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
