#include "plan/memory.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/memory_meter.hpp"
#include "models/registry.hpp"
#include "support/world.hpp"
#include "train/proof.hpp"

namespace mpi4dl {
namespace {

using testing::world;

/// What the plan says of a rank's memory is what a step needs, within a tenth.
void expect_planned_memory(const ModelOptions& model, const HaloDesign& halo) {
  const Graph graph = build_model(model);
  const Grid grid = slice("square", world().size());
  ProofOptions options{.batch = {.batch = 2}};
  options.trainer.halo = halo;
  options.trainer.type = c10::ScalarType::Float;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  const StagePlan plan(graph, grid, options.batch.batch, halo);
  const auto planned = static_cast<double>(activation_bytes(plan, world().rank(), sizeof(float)));
  const auto measured = static_cast<double>(
      train_in_layout(graph, Layout(world().size(), {grid}), options, world()).peak_bytes);
  EXPECT_NEAR(measured / planned, 1.0, 0.1) << "measured " << measured << ", planned " << planned;
}

class PlannedMemory : public ::testing::TestWithParam<HaloDesign> {};

TEST_P(PlannedMemory, OfResNetVersion1) {
  expect_planned_memory({.name = "resnet", .image = {128, 128}, .resnet_version = 1, .depth = 20},
                        GetParam());
}

TEST_P(PlannedMemory, OfResNetVersion2) {
  expect_planned_memory({.name = "resnet", .image = {128, 96}, .depth = 29}, GetParam());
}

TEST_P(PlannedMemory, OfAmoebaNet) {
  expect_planned_memory(
      {.name = "amoebanet", .image = {128, 128}, .num_layers = 6, .num_filters = 64}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Designs, PlannedMemory,
                         ::testing::Values(HaloDesign{}, HaloDesign{true, 1}, HaloDesign{true, 2}));

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
