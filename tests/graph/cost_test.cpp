#include <gtest/gtest.h>

#include "graph/graph.hpp"

namespace mpi4dl {
namespace {

/// Counts the FLOPs of one operator on an image 8x16x20, for this many positions of its result.
int64_t flops_of(const Operator& op, int64_t pixels) {
  Graph graph({8, {16, 20}});
  graph.begin_cell("cell");
  const Value value = graph.add("op", op, {graph.input()});
  return flops(graph, graph.node(value.id), pixels);
}

TEST(Flops, OfConvolutionAreTwoForEachWeightAndPosition) {
  EXPECT_EQ(flops_of(Convolution{.out_channels = 4, .kernel = {3, 5}}, 7), 2 * 4 * 8 * 15 * 7);
  EXPECT_EQ(flops_of(Convolution{.out_channels = 4, .kernel = {3, 5}, .groups = 4}, 7),
            2 * 4 * 2 * 15 * 7);
}

TEST(Flops, OfTransposedConvolutionAreTwoForEachWeightAndInputPosition) {
  const TransposedConvolution op{.out_channels = 6, .kernel = {2, 2}, .stride = {2, 2}};
  const int64_t all = int64_t{2} * 8 * 6 * 4 * 16 * 20;
  EXPECT_EQ(flops_of(op, int64_t{32} * 40), all);
  EXPECT_EQ(flops_of(op, int64_t{32} * 40 / 4), all / 4);
}

TEST(Flops, OfTransposedConvolutionDoNotOverflow) {
  Graph graph({64, {40000, 40000}});
  graph.begin_cell("cell");
  const TransposedConvolution op{.out_channels = 64, .kernel = {2, 2}, .stride = {2, 2}};
  graph.add("op", op, {graph.input()});
  EXPECT_EQ(flops_per_image(graph), int64_t{2} * 64 * 64 * 4 * 40000 * 40000);
}

TEST(Flops, OfTheOthersCountPerElement) {
  EXPECT_EQ(flops_of(MaxPool{.kernel = {2, 3}}, 5), 6 * 8 * 5);
  EXPECT_EQ(flops_of(AvgPool{.kernel = {2, 3}}, 5), 6 * 8 * 5);
  EXPECT_EQ(flops_of(GlobalAvgPool{}, 1), 8 * 16 * 20);
  EXPECT_EQ(flops_of(BatchNorm{}, 5), 2 * 8 * 5);
  EXPECT_EQ(flops_of(GroupNorm{}, 5), 2 * 8 * 5);
  EXPECT_EQ(flops_of(Relu{}, 5), 8 * 5);
  EXPECT_EQ(flops_of(Dropout{}, 5), 8 * 5);
  EXPECT_EQ(flops_of(Pointwise{}, 5), 8 * 5);
  EXPECT_EQ(flops_of(PRelu{}, 5), 8 * 5);
  EXPECT_EQ(flops_of(ChannelScale{}, 5), 8 * 5);
  EXPECT_EQ(flops_of(ChannelNorm{}, 5), 2 * 8 * 5);
  EXPECT_EQ(flops_of(ChannelSoftmax{}, 5), 2 * 8 * 5);
  EXPECT_EQ(flops_of(Resize{.factor = {2, 2}}, 5), 0);
  EXPECT_EQ(flops_of(Resize{.factor = {2, 2}, .mode = Interpolation::bilinear}, 5), 8 * 8 * 5);
  EXPECT_EQ(flops_of(Resize{.space = {9, 9}, .mode = Interpolation::bicubic}, 5), 32 * 8 * 5);
  EXPECT_EQ(flops_of(Pad{.before = {1, 1}}, 5), 0);
  EXPECT_EQ(flops_of(PixelShuffle{}, 5), 0);
  EXPECT_EQ(flops_of(Flatten{}, 1), 0);
  EXPECT_EQ(flops_of(Identity{}, 5), 0);
}

TEST(Flops, OfAGraphAreTheSumOverItsNodes) {
  Graph graph({8, {4, 5}});
  graph.begin_cell("cell");
  const Value x = graph.add("relu", Relu{}, {graph.input()});
  const Value y = graph.add("add", Add{}, {x, x, graph.input()});
  const Value pooled = graph.add("pool", GlobalAvgPool{}, {y});
  graph.add("linear", Linear{.out_features = 10}, {pooled});
  EXPECT_EQ(flops_per_image(graph), 160 + 2 * 160 + 160 + 2 * 8 * 10);
}

}  // namespace
}  // namespace mpi4dl
