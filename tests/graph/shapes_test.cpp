#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "graph/geometry.hpp"

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

/// One row for each place between the first and the last that any input writes, without padding.
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

TEST(ResultShape, OfUpsampling) {
  EXPECT_EQ(result(Upsample{.factor = 3}), (Shape{6, {36, 39}}));
  EXPECT_EQ(result(Upsample{.mode = Interpolation::bilinear}), (Shape{6, {24, 26}}));
}

TEST(ResultShape, OfJoins) {
  EXPECT_EQ(result_shape(Add{}, {kImage, kImage, kImage}), kImage);
  EXPECT_EQ(result_shape(Concat{}, {kImage, {2, {12, 13}}}), (Shape{8, {12, 13}}));
  EXPECT_EQ(result_shape(Concat{}, {{3, {}}, {4, {}}}), (Shape{7, {}}));
}

TEST(ResultShape, OfTheHead) {
  EXPECT_EQ(result(Flatten{}), (Shape{936, {}}));
  EXPECT_EQ(result_shape(Linear{.out_features = 10}, {{64, {}}}), (Shape{10, {}}));
}

TEST(ResultShape, IsThatOfTheInputForOthers) {
  for (const Operator& op : {Operator{BatchNorm{}}, Operator{GroupNorm{.groups = 3}},
                             Operator{Relu{}}, Operator{Dropout{}}, Operator{Identity{}}})
    EXPECT_EQ(result(op), kImage) << kind(op);
}

/// Why the operator does not take these inputs.
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
  EXPECT_EQ(complaint(Upsample{.factor = 0}), "its factor must be at least 1, not 0");
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
}

TEST(Complaint, ShapesDiffer) {
  EXPECT_EQ(complaint(Add{}, {kImage, kImage, {6, {13, 13}}}), "6x12x13 and 6x13x13 differ");
  EXPECT_EQ(complaint(Concat{}, {kImage, {2, {12, 12}}}),
            "only the channels of 6x12x13 and 2x12x12 may differ");
}

TEST(Complaint, SpatialAxesAreMissingOrTooMany) {
  EXPECT_EQ(complaint(Linear{}),
            "it needs an input without spatial axes; flatten it or pool it globally first");
  for (const Operator& op : {Operator{Convolution{.kernel = {1, 1}}}, Operator{GlobalAvgPool{}},
                             Operator{MaxPool{.kernel = {1, 1}}}, Operator{Upsample{}}})
    EXPECT_EQ(complaint(op, {{64, {}}}), "it needs an input with spatial axes") << kind(op);
  EXPECT_EQ(complaint(Upsample{.mode = Interpolation::bilinear}, {{1, {4, 4, 4}}}),
            "bilinear upsampling needs 2 spatial axes, not 3");
}

TEST(Complaint, InputsAreTooManyOrTooFew) {
  EXPECT_EQ(complaint(Relu{}, {kImage, kImage}), "it has 1 input, not 2");
  EXPECT_EQ(complaint(Relu{}, {}), "it has 1 input, not 0");
  EXPECT_EQ(complaint(Add{}), "it needs at least 2 inputs, not 1");
  EXPECT_EQ(complaint(Concat{}), "it needs at least 2 inputs, not 1");
}

TEST(Complaint, NoImage) {
  EXPECT_NE(complaint(Input{{0, {8, 8}}}, {}), "");
  EXPECT_NE(complaint(Input{{3, {8, 0}}}, {}), "");
  EXPECT_NE(complaint(Input{{3, {8}}}, {}), "");
}

TEST(ToString, OfShapes) {
  EXPECT_EQ(to_string(Shape{64, {128, 127}}), "64x128x127");
  EXPECT_EQ(to_string(Shape{10, {}}), "10");
}

}  // namespace
}  // namespace mpi4dl
