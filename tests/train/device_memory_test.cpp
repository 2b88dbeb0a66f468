// What libtorch's operators need on a device, and what the host needs beside it, is what the plan
// says.
#include <gtest/gtest.h>

#include <numeric>

#include "backend/backend.hpp"
#include "data/synthetic.hpp"
#include "memory/memory_meter.hpp"
#include "models/registry.hpp"
#include "plan/memory.hpp"
#include "plan/recompute.hpp"
#include "simulate/planned_run.hpp"
#include "support/world.hpp"
#include "verify/verification.hpp"

namespace mpi4dl {
namespace {

using testing::world;

VerificationOptions options_of(const Graph& graph, c10::ScalarType type) {
  VerificationOptions options{.batch = {.batch = 2}};
  options.trainer.type = type;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  return options;
}

Layout tiles() {
  return {world().size(), {make_grid("square", world().size())}};
}

/// Expects that a step needs no more activations than the plan says, but for a tenth, and not much
/// less: what libtorch's convolutions take beside their results depends on the processor.
void expect_planned_activations(const ModelOptions& model, c10::ScalarType type, bool recompute) {
  const Graph graph = build_model(model);
  VerificationOptions options = options_of(graph, type);
  options.trainer.stage.recompute = recompute;
  const StagePlan plan(graph, tiles().stages()[0], options.batch.batch, {});
  const std::vector<CellRange> cells =
      recompute ? recomputed_cells(plan) : std::vector<CellRange>();
  const auto size = static_cast<int64_t>(c10::elementSize(type));
  const auto planned = static_cast<double>(
      activation_bytes(plan, world().rank(), size, cells, Kernels::composed).peak);
  const auto measured =
      static_cast<double>(train_in_layout(graph, tiles(), options, world()).peak_bytes);
  EXPECT_LE(measured, 1.1 * planned);
  EXPECT_GE(measured, 0.8 * planned);
}

TEST(ComposedMemory, OfResNet) {
  expect_planned_activations({.name = "resnet", .image = {128, 96}, .depth = 29}, at::kFloat,
                             false);
}

TEST(ComposedMemory, OfAmoebaNet) {
  expect_planned_activations(
      {.name = "amoebanet", .image = {128, 128}, .num_layers = 3, .num_filters = 64}, at::kFloat,
      false);
}

TEST(ComposedMemory, OfHalfAType) {
  expect_planned_activations(
      {.name = "resnet", .image = {192, 160}, .resnet_version = 1, .depth = 20}, at::kBFloat16,
      false);
}

TEST(ComposedMemory, WithRecompute) {
  expect_planned_activations({.name = "resnet", .image = {64, 64}, .depth = 56}, at::kFloat, true);
}

/// Counts what the host holds at the worst moment of two steps, but for the process itself.
int64_t measured_on_host(const Graph& graph, const VerificationOptions& options) {
  const Layout layout = tiles();
  const int64_t batch = options.batch.effective();
  const MemoryMeter meter;
  Trainer trainer(graph, layout,
                  share_work(layout, options.batch, options.schedule, world().rank()),
                  options.trainer, world());
  const RandomImages data(
      {.size = batch, .classes = 10, .image = graph.shape(graph.input()), .seed = 1});
  for (int step = 0; step < 2; ++step) {
    std::vector<int64_t> samples(batch);
    std::iota(samples.begin(), samples.end(), 0);
    SampleBatch images(data, std::move(samples));
    trainer.step(images);
  }
  return meter.peak_bytes();
}

TEST(HostMemoryOfADevice, IsAtMostWhatThePlanSays) {
  if (world().context().backend->on_host()) GTEST_SKIP() << "all memory is the host's";
  const Graph graph = build_model({.name = "resnet", .image = {128, 128}, .depth = 29});
  const VerificationOptions options = options_of(graph, at::kFloat);
  const PlannedRun run(graph, tiles(), options.trainer.cells, {},
                       {.batch = options.batch, .kernels = Kernels::composed, .on_device = true});
  const RankMemory& planned = run.memory[world().rank()];
  const int64_t held = planned.on_host() - planned.process;
  const int64_t measured = measured_on_host(graph, options);
  EXPECT_LE(measured, held + held / 10);
  EXPECT_GE(measured, held / 3);
  EXPECT_EQ(planned.total(), planned.on_device() + planned.on_host());
}

}  // namespace
}  // namespace mpi4dl
