// How often the host waits for its device: never for a layer alone, but for what other ranks know.
// What is copied: nothing before a convolution.
#include <gtest/gtest.h>

#include "models/registry.hpp"
#include "support/simulated_device.hpp"
#include "support/world.hpp"
#include "verify/verification.hpp"

namespace mpi4dl::testing {
namespace {

/// Counts what ranks have to talk about, forward and backward.
struct Conversations {
  int64_t collectives = 0, maxima = 0, exchanges = 0;

  /// A largest pixel is found by two reductions, its value and its place, and its gradient handed
  /// back.
  int64_t waits() const { return 2 * collectives + maxima + 2 * exchanges; }
};

Conversations conversations_of(const Graph& graph, const Grid& grid) {
  const StagePlan plan(graph, grid, /*batch=*/2, {});
  Conversations found;
  for (const int id : plan.nodes()) {
    const Operator& op = graph.node(id).op;
    found.collectives += properties(op).collective ? 1 : 0;
    found.maxima += std::holds_alternative<GlobalMaxPool>(op) ? 1 : 0;
    found.exchanges += plan.value(id).exchanged() ? 1 : 0;
  }
  return found;
}

/// Counts what a device does in some steps.
simulated::Counters count_steps(const Graph& graph, const Grid& grid, int steps) {
  VerificationOptions options{.batch = {.batch = 2}, .steps = steps};
  options.trainer.type = c10::ScalarType::Float;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  simulated::reset_counters();
  train_in_layout(graph, Layout(world().size(), {grid}), options, world());
  return simulated::counters();
}

/// Returns the waits of one training step: of two steps less those of one, so that what happens
/// once is not counted.
int64_t waits_of_a_step(const Graph& graph, const Grid& grid) {
  const int64_t once = count_steps(graph, grid, 1).host_waits;
  return count_steps(graph, grid, 2).host_waits - once;
}

Graph resnet(int depth) {
  return build_model({.name = "resnet", .image = {32, 32}, .depth = depth});
}

/// Makes a model of what imported ones have beside convolutions and batch norms.
Graph mixture(int blocks) {
  Graph graph({.channels = 3, .space = {16, 16}});
  graph.begin_cell("stem");
  Value x = graph.add("conv", Convolution{.out_channels = 8, .kernel = {1, 1}}, {graph.input()});
  for (int block = 0; block < blocks; ++block) {
    graph.begin_cell(fmt::format("block{}", block));
    const Value skip = x;
    x = graph.add("pad", Pad{{1, 1}, {1, 1}, PadMode::reflect}, {x});
    x = graph.add("conv", Convolution{.out_channels = 8, .kernel = {3, 3}, .bias = true}, {x});
    x = graph.add("norm", GroupNorm{.groups = 2}, {x});
    x = graph.add("act", Pointwise{PointwiseFunction::silu}, {x});
    x = graph.add("dropout", Dropout{.probability = 0.1}, {x});
    // squeeze and excite, with the largest pixels too
    const Value mean = graph.add("mean", GlobalAvgPool{}, {x});
    const Value most = graph.add("most", GlobalMaxPool{}, {x});
    Value gate = graph.add("squeeze", Linear{.out_features = 8}, {mean});
    gate = graph.add("both", Add{}, {gate, most});
    gate = graph.add("sigmoid", Pointwise{PointwiseFunction::sigmoid}, {gate});
    x = graph.add("excite", Elementwise{ElementwiseFunction::multiply}, {x, gate});
    // a pyramid's scales
    x = graph.add("small", AdaptiveAvgPool{{6, 6}}, {x});
    x = graph.add("few", AdaptiveAvgPool{{1, 1}}, {x});
    x = graph.add("large", Resize{.space = {16, 16}, .mode = Interpolation::bilinear}, {x});
    x = graph.add("drop_path", Dropout{.probability = 0.1, .per = DropoutUnit::image}, {x});
    x = graph.add("sum", Add{}, {x, skip});
  }
  graph.begin_cell("head");
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 4}, {x}));
  return graph;
}

constexpr int64_t kOncePerStep = 8;  // loss, logits, gradients, statistics

void expect_waits_of_conversations(const Graph& graph) {
  const Grid grid = make_grid("square", world().size());
  const Conversations found = conversations_of(graph, grid);
  EXPECT_LE(waits_of_a_step(graph, grid), found.waits() + kOncePerStep)
      << found.collectives << " collective operators, " << found.exchanges << " exchanges";
}

TEST(DeviceWaits, AreTheSameForAnyDepthOnOneRank) {
  if (world().size() > 1) GTEST_SKIP() << "one rank's layers ask nobody";
  const int64_t waits = waits_of_a_step(resnet(11), {});
  EXPECT_EQ(waits_of_a_step(resnet(29), {}), waits);
  EXPECT_EQ(waits_of_a_step(mixture(1), {}), waits);
  EXPECT_EQ(waits_of_a_step(mixture(3), {}), waits);
  EXPECT_LE(waits, kOncePerStep);
}

TEST(DeviceWaits, AreTwoANormAndTwoAnExchange) {
  for (const int depth : {11, 20}) expect_waits_of_conversations(resnet(depth));
}

TEST(DeviceWaits, AreThoseOfCollectiveOperatorsAndNoOthers) {
  for (const int blocks : {1, 2}) expect_waits_of_conversations(mixture(blocks));
}

/// Counts convolutions of single pixels whose input others read with a halo around it.
int64_t convolutions_of_parts(const Graph& graph, const Grid& grid) {
  const StagePlan plan(graph, grid, /*batch=*/2, {});
  int64_t count = 0;
  for (const int id : plan.nodes()) {
    const auto* convolution = std::get_if<Convolution>(&graph.node(id).op);
    if (convolution == nullptr || convolution->kernel != Extents{1, 1}) continue;
    count += plan.value(graph.node(id).inputs[0]).exchanged() ? 1 : 0;
  }
  return count;
}

TEST(DeviceCopies, AreNotMadeForConvolutionsOfAWholeBuffer) {
  for (const char* slices : {"square", "vertical"}) {
    const Graph graph = build_model({.name = "resnet", .image = {48, 32}, .depth = 11});
    const Grid grid = make_grid(slices, world().size());
    const int64_t parts = convolutions_of_parts(graph, grid);
    EXPECT_LE(parts, 1) << "the first block's shortcut, of ten convolutions";
    EXPECT_EQ(count_steps(graph, grid, 1).gaps, 2 * parts) << "forward and backward";
  }
}

TEST(PinnedMemory, IsUsedAgainByTheNextStep) {
  const Grid grid = make_grid("square", world().size());
  for (const Graph& graph : {resnet(11), mixture(1)}) {
    count_steps(graph, grid, 2);
    EXPECT_EQ(count_steps(graph, grid, 2).pinned_bytes, 0);
  }
}

}  // namespace
}  // namespace mpi4dl::testing
