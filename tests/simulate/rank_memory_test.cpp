#include "simulate/rank_memory.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"
#include "plan/memory.hpp"
#include "simulate/simulator.hpp"

namespace mpi4dl {
namespace {

Graph small_resnet() {
  return build_model({.name = "resnet", .image = {64, 64}, .resnet_version = 1, .depth = 20});
}

PipelinePlan plan_of(const Graph& graph, const Layout& layout, int64_t micro_batch) {
  return {graph, layout.stages(), balance_cells(graph, layout.stages()), micro_batch, {}};
}

std::vector<RankMemory> memory_of(const Graph& graph, const Layout& layout,
                                  const MemoryOptions& options) {
  return rank_memory(plan_of(graph, layout, options.batch.batch / options.batch.parts), layout,
                     options);
}

RankMemory on_one_rank(const Graph& graph, const MemoryOptions& options) {
  return memory_of(graph, Layout(1, {Grid{}}), options)[0];
}

TEST(RankMemory, CountsEachParameterInEveryFormThatTheOptimizerNeeds) {
  const Graph graph = small_resnet();
  int64_t statistics = 0;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters)
      if (parameter.statistic()) statistics += parameter.elements();
  const int64_t trainable = graph.parameter_count();
  const RankMemory sgd = on_one_rank(graph, {});
  EXPECT_EQ(sgd.parameters, 4 * (trainable + statistics));
  EXPECT_EQ(sgd.gradients, 4 * (trainable + statistics));
  EXPECT_EQ(sgd.optimizer, 4 * trainable);
  EXPECT_EQ(on_one_rank(graph, {.optimizer_states = 0}).optimizer, 0);
  EXPECT_EQ(on_one_rank(graph, {.optimizer_states = 2}).optimizer, 8 * trainable);
  const RankMemory half = on_one_rank(graph, {.value_bytes = 2});
  EXPECT_EQ(half.parameters, (2 + 4) * trainable + 4 * statistics);
  EXPECT_EQ(half.gradients, sgd.gradients);
  EXPECT_NEAR(static_cast<double>(half.activations), 0.5 * static_cast<double>(sgd.activations),
              0.01 * static_cast<double>(sgd.activations));
}

/// A weight that is computed has values and a gradient beside those of its parameters, once for all
/// nodes that have it, and nothing else.
TEST(RankMemory, CountsComputedWeights) {
  const std::string formula = "multiply(v:4x4x3x3, g:4x1x1x1)", constant = "exp(frozen c:5x4)";
  const Graph graph = parse_graph(
      "input 4x16x16\ncell all\n"
      "all.one = convolution(input) out_channels=4 kernel=3x3 bias=false with " +
      formula +
      "\n"
      "all.two = convolution(all.one) out_channels=4 kernel=3x3 bias=false with " +
      formula +
      "\n"
      "all.pool = global_average_pooling(all.two)\n"
      "all.fc = linear(all.pool) out_features=5 bias=false with " +
      constant +
      "\n"
      "output all.fc\n");
  const int64_t trained = 144 + 4, frozen = 20;
  EXPECT_EQ(graph.parameter_count(), trained);
  const RankMemory memory = on_one_rank(graph, {});
  EXPECT_EQ(memory.parameters, 4 * (trained + frozen + 144 + 20));
  EXPECT_EQ(memory.gradients, 4 * (trained + 144));
  EXPECT_EQ(memory.optimizer, 4 * trained);
}

TEST(RankMemory, IsTheSumOfItsParts) {
  const RankMemory memory{.parameters = 1,
                          .gradients = 10,
                          .optimizer = 100,
                          .activations = 1000,
                          .pixels = 10000,
                          .unused = 100000,
                          .process = 1000000};
  EXPECT_EQ(memory.total(), 1111111);
  EXPECT_EQ(on_one_rank(small_resnet(), {}).process, kProcessBytes);
}

TEST(RankMemory, KeepsTheMicroBatchesThatTheSimulatorCounts) {
  const Graph graph = small_resnet();
  const Layout layout(4, std::vector<Grid>(4));
  const PipelinePlan plan = plan_of(graph, layout, 1);
  for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    std::vector<Schedule> schedules;
    for (int stage = 0; stage < 4; ++stage)
      schedules.push_back(make_schedule(kind, {.stages = 4, .micro_batches = 8}, stage));
    const Simulation simulated = simulate(layout, schedules, std::vector<StageCost>(4));
    const auto memory =
        memory_of(graph, layout, {.batch = {.batch = 8, .parts = 8}, .schedule = kind});
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(memory[rank].activations,
                activation_bytes(plan.stages()[rank], 0, 4).with_live(simulated.peak_live[rank]));
  }
}

TEST(RankMemory, OfTwoDirectionsHoldsTheParametersOfBothStages) {
  const Graph graph = small_resnet();
  const std::vector<Grid> stages(3);
  const auto one = memory_of(graph, Layout(3, stages), {.batch = {.batch = 2}});
  const auto both = memory_of(graph, Layout(3, stages, /*gems=*/true),
                              {.batch = {.batch = 2, .times = 2}, .schedule = ScheduleKind::gems});
  EXPECT_EQ(both[0].parameters, one[0].parameters + one[2].parameters);
  EXPECT_EQ(both[1].parameters, one[1].parameters);  // the same stage in both directions
  EXPECT_EQ(both[2].optimizer, one[0].optimizer + one[2].optimizer);
  EXPECT_EQ(both[0].activations, std::max(one[0].activations, one[2].activations));
}

TEST(RankMemory, OfPixelsReadAheadIsTheTileWithItsMargin) {
  const Graph graph = small_resnet();
  const auto memory = memory_of(graph, Layout(4, {Grid{1, 2, 2}}), {.boxes_ahead = 3});
  EXPECT_EQ(memory[0].pixels, 3 * (4 * 3 * 33 * 33));
}

TEST(RankMemory, OfTilesAlsoHoldsTheHalosOfAnotherMoment) {
  const Graph graph = small_resnet();
  EXPECT_GE(on_one_rank(graph, {}).unused, 0);
  const StagePlan tiles(graph, {1, 2, 2}, 1, {});
  const ActivationBytes tile = activation_bytes(tiles, 0, 4);
  EXPECT_GT(tile.reserved, tile.peak);
  EXPECT_LT(static_cast<double>(tile.reserved), 1.3 * static_cast<double>(tile.peak));
}

}  // namespace
}  // namespace mpi4dl
