// A model of one's own, as docs/models.md shows it: written once, found by name, planned on tiles.
#include <fmt/format.h>

#include "models/registry.hpp"
#include "sample_plans.hpp"

namespace mpi4dl {
namespace {

using namespace testing;

Graph three_blocks(const ModelOptions& options) {
  Graph graph({.channels = options.channels, .space = options.image});
  Value x = graph.input();
  for (const int64_t channels : {16, 32, 64}) {
    graph.begin_cell(fmt::format("block{}", channels));
    const Convolution conv{
        .out_channels = channels, .kernel = {3, 3}, .padding = {1, 1}, .bias = false};
    x = graph.add("conv", conv, {x});
    x = graph.add("bn", BatchNorm{}, {x});
    x = graph.add("relu", Relu{}, {x});
    x = graph.add("pool", MaxPool{.kernel = {2, 2}}, {x});
  }
  graph.begin_cell("head");
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = options.classes}, {x}));
  return graph;
}

TEST(OwnModel, IsWrittenOnceAndRunsOnAnyTiles) {
  register_model("three-blocks", three_blocks);
  const Graph graph = build_model({.name = "three-blocks", .image = {96, 64}});
  EXPECT_EQ(graph.cells(), (std::vector<std::string>{"block16", "block32", "block64", "head"}));
  EXPECT_EQ(graph.parameter_count(), 9 * (3 * 16 + 16 * 32 + 32 * 64) + 2 * 112 + 650);
  EXPECT_EQ(to_string(graph.node(graph.output()).shape), "10");

  // On even tiles only convolutions read neighbours, and the first reads the image.
  const StagePlan plan(graph, {.rows = 2, .cols = 2}, 1, {});
  EXPECT_EQ(exchanges(plan), (std::vector<std::string>{"block16.pool", "block32.pool"}));
}

}  // namespace
}  // namespace mpi4dl
