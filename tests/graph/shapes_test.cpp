#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {
namespace {

const Shape kImage{6, {12, 13}};

Shape result(const Operator& op) {
  return result_shape(op, {kImage});
}

TEST(ResultShape, OfConvolution) {
  EXPECT_EQ(result(Convolution{.out_channels = 16, .kernel = {3, 3}, .padding = {1, 1}}),
            (Shape{16, {12, 13}}));
  EXPECT_EQ(result(Convolution{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}),
            (Shape{1, {6, 7}}));
  EXPECT_EQ(result(Convolution{.kernel = {1, 7}, .padding = {0, 3}}), (Shape{1, {12, 13}}));
  EXPECT_EQ(result(Convolution{.kernel = {2, 2}}), (Shape{1, {11, 12}}));
  EXPECT_EQ(result(Convolution{.kernel = {3, 3}, .dilation = {3, 1}}), (Shape{1, {6, 11}}));
  EXPECT_EQ(result_shape(Convolution{.out_channels = 4, .kernel = {3, 3, 3}}, {{1, {5, 6, 7}}}),
            (Shape{4, {3, 4, 5}}));
}

TEST(ResultShape, OfPooling) {
  EXPECT_EQ(result(MaxPool{.kernel = {2, 2}}), (Shape{6, {6, 6}}));
  EXPECT_EQ(result(MaxPool{.kernel = {2, 2}, .ceil_mode = true}), (Shape{6, {6, 7}}));
  EXPECT_EQ(result(AvgPool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}),
            (Shape{6, {6, 7}}));
  EXPECT_EQ(result(AvgPool{.kernel = {8, 8}}), (Shape{6, {1, 1}}));
  EXPECT_EQ(result(GlobalAvgPool{}), (Shape{6, {}}));
}

/// Counts one row for each place between the first and the last that any input writes, without
/// padding.
int64_t rows_written(int64_t inputs, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation) {
  int64_t last = 0;
  for (int64_t input = 0; input < inputs; ++input)
    for (int64_t tap = 0; tap < kernel; ++tap)
      last = std::max(last, input * stride + tap * dilation);
  return last + 1 - 2 * padding;
}

TEST(ResultShape, OfTransposedConvolutionCoversWhatItsInputsWrite) {
  for (int64_t kernel = 1; kernel <= 4; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      for (int64_t padding = 0; padding <= 2; ++padding)
        for (int64_t dilation = 1; dilation <= 2; ++dilation)
          for (int64_t extra = 0; extra < stride; ++extra) {
            const TransposedConvolution op{.out_channels = 3,
                                           .kernel = {kernel, 1},
                                           .stride = {stride, 1},
                                           .padding = {padding, 0},
                                           .dilation = {dilation, 1},
                                           .output_padding = {extra, 0}};
            const int64_t rows = rows_written(12, kernel, stride, padding, dilation) + extra;
            EXPECT_EQ(result(op), (Shape{3, {rows, 13}}));
          }
}

TEST(ResultShape, OfWindowsWithOtherPaddingAtTheEnd) {
  EXPECT_EQ(result(Convolution{.kernel = {2, 4}, .padding = {0, 1}, .padding_end = {1, 2}}),
            (Shape{1, {12, 13}}));
  EXPECT_EQ(result(MaxPool{.kernel = {3, 3}, .stride = {2, 2}, .padding_end = {1, 1}}),
            (Shape{6, {6, 6}}));
  EXPECT_EQ(result(AvgPool{.kernel = {4, 4}, .padding = {2, 2}, .padding_end = {0, 0}}),
            (Shape{6, {3, 3}}));
}

TEST(ResultShape, OfResizing) {
  EXPECT_EQ(result(Resize{.factor = {3, 3}}), (Shape{6, {36, 39}}));
  EXPECT_EQ(result(Resize{.factor = {0.5, 1.5}, .mode = Interpolation::bilinear}),
            (Shape{6, {6, 19}}));
  EXPECT_EQ(result(Resize{.space = {5, 100}}), (Shape{6, {5, 100}}));
}

TEST(ResultShape, OfPadding) {
  EXPECT_EQ(result(Pad{.before = {1, 2}, .after = {3, 4}}), (Shape{6, {16, 19}}));
  EXPECT_EQ(result(Pad{.after = {-2, -12}}), (Shape{6, {10, 1}}));
  EXPECT_EQ(result(Pad{.before = {11, 12}, .mode = PadMode::reflect}), (Shape{6, {23, 25}}));
}

TEST(ResultShape, OfWhatMovesChannels) {
  EXPECT_EQ(result(PixelUnshuffle{.factor = 1}), kImage);
  EXPECT_EQ(result_shape(PixelUnshuffle{}, {{3, {8, 6}}}), (Shape{12, {4, 3}}));
  EXPECT_EQ(result_shape(PixelShuffle{}, {{12, {4, 3}}}), (Shape{3, {8, 6}}));
  EXPECT_EQ(result(ChannelShuffle{.groups = 3}), kImage);
  EXPECT_EQ(result(ChannelPad{.before = 1, .after = 2}), (Shape{9, {12, 13}}));
}

TEST(ResultShape, OfJoins) {
  EXPECT_EQ(result_shape(Add{}, {kImage, kImage, kImage}), kImage);
  EXPECT_EQ(result_shape(Concat{}, {kImage, {2, {12, 13}}}), (Shape{8, {12, 13}}));
  EXPECT_EQ(result_shape(Concat{}, {{3, {}}, {4, {}}}), (Shape{7, {}}));
  EXPECT_EQ(result(Concat{}), kImage);
}

TEST(ResultShape, OfElementwiseHasTheChannelsOfOneOperandAndTheSizeOfOne) {
  const Shape map = kImage, vector{6, {}}, gate{1, {12, 13}}, number{1, {}};
  for (const Shape& other : {map, vector, gate, number}) {
    EXPECT_EQ(result_shape(Elementwise{}, {map, other}), map);
    EXPECT_EQ(result_shape(Elementwise{}, {other, map}), map);
  }
  EXPECT_EQ(result_shape(Elementwise{}, {vector, gate}), map);
  EXPECT_EQ(result_shape(Elementwise{}, {vector, number}), vector);
}

TEST(ResultShape, OfTheHead) {
  EXPECT_EQ(result(Flatten{}), (Shape{936, {}}));
  EXPECT_EQ(result_shape(Linear{.out_features = 10}, {{64, {}}}), (Shape{10, {}}));
}

TEST(ResultShape, IsThatOfTheInputForOthers) {
  for (const Operator& op :
       {Operator{BatchNorm{}}, Operator{GroupNorm{.groups = 3}}, Operator{GroupNorm{.groups = 0}},
        Operator{Relu{}}, Operator{Dropout{}}, Operator{Identity{}}, Operator{Pointwise{}},
        Operator{ChannelScale{}}, Operator{PRelu{6}}, Operator{ChannelNorm{}},
        Operator{ChannelSoftmax{}}})
    EXPECT_EQ(result(op), kImage) << kind(op);
}

/// Says why the operator does not take these inputs.
std::string complaint(const Operator& op, const std::vector<Shape>& inputs = {kImage}) {
  try {
    result_shape(op, inputs);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Complaint, KernelDoesNotFit) {
  EXPECT_EQ(complaint(AvgPool{.kernel = {8, 8}}, {{64, {4, 9}}}),
            "its kernel 8x8 covers 8x8 pixels, but the input has only 4x9 with padding");
  EXPECT_EQ(complaint(Convolution{.kernel = {3, 3}, .padding = {1, 1}, .dilation = {4, 4}},
                      {{3, {4, 5}}}),
            "its kernel 3x3 covers 9x9 pixels, but the input has only 6x7 with padding");
}

TEST(Complaint, OptionsDoNotFitTheAxes) {
  EXPECT_EQ(complaint(Convolution{.kernel = {3, 3, 3}}),
            "its kernel 3x3x3 needs one number for each of 2 spatial axes");
  EXPECT_EQ(complaint(MaxPool{.kernel = {3, 3}, .stride = {2}}),
            "its stride 2 needs one number for each of 2 spatial axes");
  EXPECT_EQ(complaint(Convolution{.kernel = {}}), "it has no kernel");
}

TEST(Complaint, OptionsAreOutOfRange) {
  EXPECT_EQ(complaint(Convolution{.kernel = {0, 3}}),
            "its kernel 0x3 must be at least 1 on each axis");
  EXPECT_EQ(complaint(Convolution{.kernel = {3, 3}, .stride = {1, 0}}),
            "its stride 1x0 must be at least 1 on each axis");
  EXPECT_EQ(complaint(Convolution{.kernel = {3, 3}, .padding = {-1, 0}}),
            "its padding -1x0 must be at least 0 on each axis");
  EXPECT_EQ(complaint(AvgPool{.kernel = {3, 3}, .padding = {2, 1}}),
            "its padding 2x1 must be at most half of its kernel 3x3");
  EXPECT_EQ(complaint(Dropout{.probability = 1}), "its probability must be in [0, 1), not 1");
  EXPECT_EQ(complaint(Pointwise{PointwiseFunction::hardtanh, 6, 0}),
            "its smallest value a=6 must be below its largest b=0");
  EXPECT_EQ(complaint(Pointwise{PointwiseFunction::softplus}),
            "it divides by its option a, which must not be 0");
  EXPECT_EQ(complaint(AdaptiveAvgPool{{2, 0}}), "its size 2x0 must be at least 1 on each axis");
  EXPECT_EQ(complaint(AdaptiveAvgPool{}), "it has no size");
  EXPECT_EQ(complaint(Convolution{.kernel = {2, 2}, .padding_end = {1, -1}}),
            "its padding at the end 1x-1 must be at least 0 on each axis");
  EXPECT_EQ(complaint(MaxPool{.kernel = {2, 2}, .padding_end = {2, 0}}),
            "its padding 2x0 must be at most half of its kernel 2x2");
}

/// Sums and products of options fit into 64 bits only where each of them is bounded.
TEST(Complaint, OptionsAreTooLarge) {
  constexpr int64_t large = int64_t{1} << 40;
  EXPECT_EQ(complaint(MaxPool{.kernel = {3, 3}, .dilation = {1, large}}),
            "its dilation of 1099511627776 is too large");
  EXPECT_EQ(complaint(Convolution{.kernel = {3, 3}, .padding = {-large, 0}}),
            "its padding of -1099511627776 is too large");
  EXPECT_EQ(complaint(PixelShuffle{.factor = large}), "its factor of 1099511627776 is too large");
  EXPECT_EQ(complaint(TransposedConvolution{.kernel = {1, 1}, .stride = {1 << 30, 1 << 30}}),
            "its size of 11811160065 is too large");
}

TEST(Complaint, ResizingHasNoSize) {
  EXPECT_EQ(complaint(Resize{}), "it needs either a size or a factor");
  EXPECT_EQ(complaint(Resize{.space = {2, 2}, .factor = {1, 1}}),
            "it needs either a size or a factor");
  EXPECT_EQ(complaint(Resize{.space = {0, 3}}), "its size 0x3 must be at least 1 on each axis");
  EXPECT_EQ(complaint(Resize{.factor = {2}}),
            "its factor needs one number for each of 2 spatial axes, not 1");
  EXPECT_EQ(complaint(Resize{.factor = {1, 0}}),
            "its factor must be positive and fit an axis of 13 pixels, unlike 0");
  EXPECT_EQ(complaint(Resize{.factor = {1, 0.05}}), "its result would have 12x0 pixels");
  EXPECT_EQ(complaint(Resize{.space = {4, 4, 4}, .mode = Interpolation::bicubic}, {{1, {4, 4, 4}}}),
            "bicubic interpolation needs 2 spatial axes, not 3");
  EXPECT_EQ(complaint(Resize{.space = {4, 4}, .align_corners = true}),
            "only bilinear and bicubic interpolation can align corners");
}

TEST(Complaint, PaddingNeedsMoreThanThereIs) {
  EXPECT_EQ(complaint(Pad{.before = {-6, 0}, .after = {-6, 0}}),
            "it cuts off 6 and 6 of 12 pixels");
  EXPECT_EQ(complaint(Pad{.after = {12, 0}, .mode = PadMode::reflect}),
            "its padding 12 must be smaller than the 12 pixels that it reflects");
  EXPECT_EQ(complaint(Pad{.before = {0, -4}, .after = {0, 10}, .mode = PadMode::circular}),
            "its padding 10 must be at most the 9 pixels that it repeats");
}

TEST(Complaint, ChannelsCannotBeMoved) {
  EXPECT_EQ(complaint(PixelShuffle{}), "the square of its factor 2 must divide the 6 channels");
  EXPECT_EQ(complaint(PixelUnshuffle{}), "its factor 2 must divide height and width of 6x12x13");
  EXPECT_EQ(complaint(ChannelShuffle{.groups = 4}), "its 4 groups must divide the 6 channels");
  EXPECT_EQ(complaint(ChannelPad{.before = -1}),
            "it adds -1 and 0 channels; neither may be negative");
}

TEST(Complaint, TransposedConvolutionPadsTooMuch) {
  EXPECT_EQ(complaint(TransposedConvolution{.kernel = {1, 1}, .padding = {6, 0}}),
            "its padding 6x0 leaves nothing of the result");
  EXPECT_EQ(complaint(TransposedConvolution{
                .kernel = {2, 2}, .stride = {2, 2}, .output_padding = {2, 0}}),
            "its output padding 2x0 must be smaller than its stride or its dilation");
}

TEST(Complaint, GroupsDoNotDivideTheChannels) {
  EXPECT_EQ(complaint(Convolution{.out_channels = 8, .kernel = {3, 3}, .groups = 4}),
            "its 4 groups must divide the 6 input and 8 output channels");
  EXPECT_EQ(complaint(TransposedConvolution{.out_channels = 4, .kernel = {3, 3}, .groups = 3}),
            "its 3 groups must divide the 6 input and 4 output channels");
  EXPECT_EQ(complaint(GroupNorm{.groups = 4}), "its 4 groups must divide the 6 channels");
  EXPECT_EQ(complaint(GroupNorm{.groups = -1}), "its -1 groups must divide the 6 channels");
  EXPECT_EQ(complaint(PRelu{2}), "it has 1 parameter or one for each of 6 channels, not 2");
}

TEST(Complaint, ShapesDiffer) {
  EXPECT_EQ(complaint(Add{}, {kImage, kImage, {6, {13, 13}}}), "6x12x13 and 6x13x13 differ");
  EXPECT_EQ(complaint(Concat{}, {kImage, {2, {12, 12}}}),
            "only the channels of 6x12x13 and 2x12x12 may differ");
}

TEST(Complaint, OperandsDoNotGoTogether) {
  EXPECT_EQ(complaint(Elementwise{}, {kImage, {2, {12, 13}}}),
            "6 channels go with 6 or 1, not with 2");
  EXPECT_EQ(complaint(Elementwise{}, {{1, {12, 12}}, kImage}),
            "one of 1x12x12 and 6x12x13 must have the other's spatial axes, or none");
  EXPECT_EQ(complaint(Elementwise{}, {kImage}), "it has 2 inputs, not 1");
}

TEST(Complaint, SpatialAxesAreMissingOrTooMany) {
  EXPECT_EQ(complaint(Linear{}),
            "it needs an input without spatial axes; flatten it or pool it globally first");
  EXPECT_EQ(
      complaint(Convolution{.kernel = {3, 1}, .padding = {1, 0}}, {{64, {}}}),
      "without spatial axes there is one pixel, for a kernel of 1 on each axis and no padding, "
      "not a kernel of 3x1 and a padding of 1x0");
  for (const Operator& op : {Operator{AdaptiveAvgPool{{2, 2}}}, Operator{GlobalAvgPool{}},
                             Operator{MaxPool{.kernel = {1, 1}}}, Operator{Resize{.factor = {2}}}})
    EXPECT_EQ(complaint(op, {{64, {}}}), "it needs an input with spatial axes") << kind(op);
}

TEST(Complaint, InputsAreTooManyOrTooFew) {
  EXPECT_EQ(complaint(Relu{}, {kImage, kImage}), "it has 1 input, not 2");
  EXPECT_EQ(complaint(Relu{}, {}), "it has 1 input, not 0");
  EXPECT_EQ(complaint(Add{}), "it needs at least 2 inputs, not 1");
  EXPECT_EQ(complaint(Concat{}, {}), "it needs at least 1 input, not 0");
}

TEST(Complaint, NoImage) {
  EXPECT_NE(complaint(Input{{0, {8, 8}}}, {}), "");
  EXPECT_NE(complaint(Input{{3, {8, 0}}}, {}), "");
  EXPECT_NE(complaint(Input{{3, {8}}}, {}), "");
}

TEST(Complaint, MoreThanCanBeCounted) {
  const int64_t much = int64_t{1} << 30;
  EXPECT_EQ(complaint(Input{{1, {much, much}}}, {}), "it would have 1.15e+18 elements");
  EXPECT_EQ(complaint(Broadcast{{much, much}}, {{8, {}}}), "it would have 9.22e+18 elements");
  EXPECT_EQ(
      complaint(Convolution{.out_channels = 1 << 15, .kernel = {128, 128}, .padding = {64, 64}},
                {{1 << 10, {1 << 15, 1 << 15}}}),
      "it would take 5.9e+20 operations");
}

TEST(ToString, OfShapes) {
  EXPECT_EQ(to_string(Shape{64, {128, 127}}), "64x128x127");
  EXPECT_EQ(to_string(Shape{10, {}}), "10");
}

}  // namespace
}  // namespace mpi4dl
