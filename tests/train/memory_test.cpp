#include "plan/memory.hpp"
#include "comm/collectives.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "memory/memory_meter.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"
#include "plan/recompute.hpp"
#include "simulate/simulator.hpp"
#include "support/world.hpp"
#include "verify/verification.hpp"

namespace mpi4dl {
namespace {

using testing::world;

/// Expects that a step needs the memory that the plan says, within a tenth.
void expect_planned_memory(const Graph& graph, const HaloDesign& halo) {
  const Grid grid = make_grid("square", world().size());
  VerificationOptions options{.batch = {.batch = 2}};
  options.trainer.halo = halo;
  options.trainer.type = c10::ScalarType::Float;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  const StagePlan plan(graph, grid, options.batch.batch, halo);
  const auto planned =
      static_cast<double>(activation_bytes(plan, world().rank(), sizeof(float)).peak);
  const auto measured = static_cast<double>(
      train_in_layout(graph, Layout(world().size(), {grid}), options, world()).peak_bytes);
  EXPECT_NEAR(measured / planned, 1.0, 0.1) << "measured " << measured << ", planned " << planned;
}

class PlannedMemory : public ::testing::TestWithParam<HaloDesign> {};

TEST_P(PlannedMemory, OfResNetVersion1) {
  expect_planned_memory(
      build_model({.name = "resnet", .image = {128, 128}, .resnet_version = 1, .depth = 20}),
      GetParam());
}

TEST_P(PlannedMemory, OfResNetVersion2) {
  expect_planned_memory(build_model({.name = "resnet", .image = {128, 96}, .depth = 29}),
                        GetParam());
}

TEST_P(PlannedMemory, OfAmoebaNet) {
  expect_planned_memory(
      build_model({.name = "amoebanet", .image = {128, 128}, .num_layers = 6, .num_filters = 64}),
      GetParam());
}

/// Weights are as large as maps here, so that what their formulas take is seen.
TEST_P(PlannedMemory, OfComputedWeights) {
  std::string text = "input 64x48x48\n", before = "input";
  for (const std::string cell : {"a", "b", "c", "d"}) {
    text += "cell " + cell + "\n" + cell + ".conv = convolution(" + before +
            ") out_channels=64 kernel=5x5 padding=2x2 bias=false with multiply(standardise(" +
            cell + ".w:64x64x5x5, 1x2x3, 1e-06), " + cell + ".gain:64x1x1x1)\n" + cell +
            ".relu = relu(" + cell + ".conv)\n";
    before = cell + ".relu";
  }
  text +=
      "cell e\ne.pool = global_average_pooling(d.relu)\ne.fc = linear(e.pool) "
      "out_features=10\noutput e.fc\n";
  expect_planned_memory(parse_graph(text), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Designs, PlannedMemory,
                         ::testing::Values(HaloDesign{}, HaloDesign{true, 1}, HaloDesign{true, 2}));

VerificationOptions pipeline_options(const Graph& graph, const Layout& layout) {
  VerificationOptions options{.batch = {.batch = 4}, .steps = 2};
  options.trainer.type = c10::ScalarType::Float;
  options.trainer.cells = balance_cells(graph, layout.stages());
  return options;
}

int64_t peak_bytes(const Graph& graph, const Layout& layout, const VerificationOptions& options) {
  return train_in_layout(graph, layout, options, world()).peak_bytes;
}

int64_t largest(int64_t mine) {
  const auto all = all_gather(mine, world());
  return *std::max_element(all.begin(), all.end());
}

/// Counts the micro-batches that a rank has alive at once, by the simulator.
int live(const Layout& layout, const VerificationOptions& options) {
  const PipelineShape shape{static_cast<int>(layout.stages().size()), options.batch.parts};
  std::vector<Schedule> schedules;
  for (int stage = 0; stage < shape.stages; ++stage)
    schedules.push_back(make_schedule(options.schedule, shape, stage));
  return simulate(layout, schedules, std::vector<StageCost>(shape.stages))
      .peak_live[world().rank()];
}

TEST(PipelineMemory, IsThatOfTheMicroBatchesTheSimulatorCounts) {
  const Graph graph =
      build_model({.name = "resnet", .image = {128, 128}, .resnet_version = 1, .depth = 20});
  const Layout layout(world().size(), std::vector<Grid>(world().size()));
  VerificationOptions options = pipeline_options(graph, layout);
  options.batch = {.batch = 8, .parts = 8};
  const CellRange cells = options.trainer.cells[world().rank()];
  const auto one = activation_bytes(StagePlan(graph, {}, 1, {}, cells), 0, sizeof(float));
  std::map<ScheduleKind, int64_t> planned, measured;
  for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    options.schedule = kind;
    const int64_t most = planned[kind] = one.with_live(live(layout, options));
    const int64_t least = most - one.in_transit;  // where other stages always come in time
    measured[kind] = peak_bytes(graph, layout, options);
    EXPECT_GE(static_cast<double>(measured[kind]), 0.9 * static_cast<double>(least));
    EXPECT_LE(static_cast<double>(measured[kind]), 1.1 * static_cast<double>(most));
  }
  const auto saved = [](auto& bytes) {
    return static_cast<double>(bytes[ScheduleKind::gpipe] - bytes[ScheduleKind::one_f_one_b]);
  };
  EXPECT_NEAR(saved(measured), saved(planned),
              0.1 * static_cast<double>(planned[ScheduleKind::gpipe]));
}

TEST(PipelineMemory, OfTwoDirectionsIsThatOfOne) {
  const Graph graph = build_model({.name = "resnet", .image = {64, 64}, .depth = 29});
  const std::vector<Grid> stages(world().size());
  const Layout one_way(world().size(), stages), both_ways(world().size(), stages, /*gems=*/true);
  VerificationOptions options = pipeline_options(graph, one_way);
  const int64_t one = peak_bytes(graph, one_way, options);
  options.batch.times = 2;
  options.schedule = ScheduleKind::gems;
  const int64_t both = peak_bytes(graph, both_ways, options);
  EXPECT_LE(static_cast<double>(largest(both)), 1.15 * static_cast<double>(largest(one)));
}

TEST(PipelineMemory, IsLessWithRecompute) {
  const Graph graph = build_model({.name = "resnet", .image = {64, 64}, .depth = 110});
  const Layout layout(world().size(), {make_grid("square", world().size())});
  VerificationOptions options = pipeline_options(graph, layout);
  options.steps = 1;
  const int64_t all = peak_bytes(graph, layout, options);
  options.trainer.stage.recompute = true;
  const int64_t less = peak_bytes(graph, layout, options);
  EXPECT_LE(3 * less, all);
  const StagePlan plan(graph, layout.stages()[0], options.batch.batch, {});
  const auto planned =
      activation_bytes(plan, world().rank(), sizeof(float), recomputed_cells(plan));
  EXPECT_NEAR(static_cast<double>(less) / static_cast<double>(planned.peak), 1.0, 0.1);
}

TEST(TileMemory, IsThatOfTheTilesShare) {
  const Graph graph = build_model({.name = "resnet", .image = {128, 128}, .depth = 29});
  const Layout layout(world().size(), {make_grid("square", world().size())});
  const VerificationOptions options = pipeline_options(graph, layout);
  const auto whole =
      static_cast<double>(activation_bytes(StagePlan(graph, {}, 4, {}), 0, sizeof(float)).peak);
  EXPECT_LE(static_cast<double>(peak_bytes(graph, layout, options)), 1.2 * whole / world().size());
}

TEST(MemoryMeter, SeesOrdinaryAndSharedTensors) {
  const MemoryMeter meter;
  {
    const at::Tensor ordinary = at::zeros({1000}, at::kFloat);
    const Patch shared = make_patch(world(), {{0, 1}, {0, 2}, {0, 10}, {0, 10}}, at::kFloat);
    EXPECT_EQ(meter.live_bytes(), 4000 + 800);
  }
  EXPECT_EQ(meter.live_bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 4000 + 800);
}

}  // namespace
}  // namespace mpi4dl
