// Random networks x random layouts: training steps on many ranks are those of one rank, send what
// the plan says, and leave the same parameters on every rank that holds them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "execute/parameters.hpp"
#include "support/agreement.hpp"
#include "support/describe.hpp"
#include "support/random_graph.hpp"
#include "support/random_layout.hpp"
#include "support/scoped.hpp"
#include "train/batch_norm_check.hpp"
#include "verify/verification.hpp"

namespace mpi4dl::testing {
namespace {

constexpr double kTolerance = 1e-9;

struct Case {
  Graph graph;
  Layout layout;
  VerificationOptions options;
};

std::string summary(const Case& c) {
  std::string stages;
  for (const Grid& grid : c.layout.stages())
    stages += fmt::format(" {}x{}x{}", grid.batch, grid.rows, grid.cols);
  const auto& [shape, kind, trainer, steps] = c.options;
  return fmt::format(
      "seed {}, stages{}, {} replicas, batch {}, parts {}, times {}, schedule {}, {}, recompute "
      "{}, buckets of {} bytes, {} steps\n{}",
      trainer.seed, stages, shape.replicas, shape.batch, shape.parts, shape.times,
      static_cast<int>(kind), describe(trainer.halo), trainer.stage.recompute,
      trainer.reduction.bucket_bytes, steps, describe(c.graph));
}

Case draw(Dice& dice, uint64_t seed, bool spread) {
  const int replicas = spread && dice.chance(0.4) ? draw_divisor(dice, world().size()) : 1;
  const int group = world().size() / replicas;
  const auto stages = spread ? draw_stages(dice, group) : std::vector{dice.grid(group)};
  const bool gems = spread && dice.chance(0.3);
  const bool fused = dice.chance(0.6);
  int64_t batch_parts = 1;
  for (const Grid& grid : stages) batch_parts = std::max<int64_t>(batch_parts, grid.batch);
  const int parts = spread ? static_cast<int>(dice.pick(1, 3)) : 1;
  const Shape image = draw_image(dice, stages);
  Case c{.graph = random_graph(dice, image, /*dense=*/dice.chance(0.3)),
         .layout = Layout(world().size(), stages, gems),
         .options = {}};
  c.options.batch = {.batch = dice.pick(parts * batch_parts, parts * batch_parts + 2),
                     .parts = parts,
                     .times = gems ? static_cast<int>(dice.pick(1, 3)) : 1,
                     .replicas = replicas};
  c.options.schedule =
      gems ? ScheduleKind::gems : dice.one_of({ScheduleKind::gpipe, ScheduleKind::one_f_one_b});
  TrainerOptions& trainer = c.options.trainer;
  trainer.halo = {fused, fused ? static_cast<int>(dice.pick(1, 7)) : 1};
  trainer.cells =
      draw_balance(dice, static_cast<int>(c.graph.cells().size()), static_cast<int>(stages.size()));
  trainer.stage.recompute = spread && dice.chance(0.3);
  if (spread && dice.chance(0.2)) trainer.stage.batch_norm = BatchNormScope::replicas;
  trainer.clip_norm = dice.chance(0.2) ? 0.5 : 0;
  trainer.reduction.bucket_bytes = dice.one_of<int64_t>({1, int64_t{4} << 20});
  trainer.seed = seed;
  c.options.steps = dice.chance(0.25) ? 2 : 1;
  for (const MicroBatch& images : micro_batches(c.options.batch, 0))
    check_batch_norms(PipelinePlan(c.graph, stages, trainer.cells,
                                   static_cast<int64_t>(images.size()), trainer.halo),
                      trainer.stage.batch_norm, replicas);
  return c;
}

/// Draws again what does not fit together.
Case draw_case(uint64_t seed, bool spread) {
  Dice dice(combine_keys(seed, world().size()));
  return draw_until_it_fits([&] { return draw(dice, seed, spread); });
}

void expect_planned_traffic(const Case& c, const Traffic& mine) {
  if (c.options.trainer.stage.recompute) return;
  Traffic sent;
  for (const Traffic& theirs : all_gather(mine, world())) {
    sent.messages += theirs.messages;
    sent.bytes += theirs.bytes;
  }
  Traffic planned;
  for (const MicroBatch& images : all_micro_batches(c.options.batch)) {
    const PipelinePlan plan(c.graph, c.layout.stages(), c.options.trainer.cells,
                            static_cast<int64_t>(images.size()), c.options.trainer.halo);
    planned.messages += plan.cost().messages * c.options.steps;
    planned.bytes += plan.cost().elements * c.options.steps * 8;
  }
  EXPECT_EQ(sent.messages, planned.messages);
  EXPECT_EQ(sent.bytes, planned.bytes);
}

using Tensors = std::map<std::string, at::Tensor>;

/// Expects each within the tolerance of the larger of its own norm and 1e-3 of the norm of all: in
/// networks this small, true zeros (a bias before a norm, a mean after one) are often hidden by
/// rounding.
void expect_close(const Tensors& result, const Tensors& expected, const std::string& what) {
  double squares = 0;
  for (const auto& [name, values] : expected) squares += values.square().sum().item<double>();
  ASSERT_EQ(result.size(), expected.size()) << what;
  for (const auto& [name, values] : expected) {
    const double scale = std::max(values.norm().item<double>(), 1e-3 * std::sqrt(squares));
    const double apart = (result.at(name) - values).norm().item<double>();
    EXPECT_LE(apart, kTolerance * scale) << what << " of " << name;
  }
}

/// A window may see nothing but padding: then a constant reaches a batch norm, whose output is zero
/// but for rounding, and a ReLU decides by the sign of that. Such networks have dead parameters.
bool has_dead_parameter(const StepResult& step) {
  return std::any_of(step.gradients.begin(), step.gradients.end(), [](const auto& gradient) {
    return gradient.second.count_nonzero().template item<int64_t>() == 0;
  });
}

/// Such a network also has a channel of equal pixels: a pooled value that is broadcast, the largest
/// of many zeros. Their variance is zero, and the running one has come down by momentum alone.
bool has_constant_channel(const StepResult& step, int steps) {
  const double untouched = std::pow(1 - BatchNorm{}.momentum, steps);
  return std::ranges::any_of(step.statistics, [untouched](const auto& statistic) {
    return statistic.first.ends_with("running_var") &&
           (statistic.second - untouched).abs().min().template item<double>() < 1e-9;
  });
}

/// Frozen parameters, which random graphs call so, are what they were, and have no gradient.
void expect_frozen_unchanged(const Case& c, const StepResult& result) {
  std::vector<int> nodes(c.graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const Parameters start(c.graph, nodes, c.options.trainer.type, c.options.trainer.seed,
                         make_backend("cpu", at::kCPU));
  Tensors values = start.trained();
  values.merge(start.frozen());
  for (const auto& [name, value] : values) {
    if (!name.starts_with("frozen")) continue;
    EXPECT_TRUE(at::equal(result.parameters.at(name), value)) << name;
    EXPECT_FALSE(result.gradients.contains(name)) << name;
  }
}

/// Returns false where there was nothing to compare.
bool equals_one_rank(const Case& c, const StepResult& result,
                     const std::optional<Communicator>& alone) {
  if (!alone) return true;
  const StepResult expected = train_alone(c.graph, c.options, *alone);
  if (has_dead_parameter(expected) || has_constant_channel(expected, c.options.steps)) return false;
  EXPECT_NEAR(result.loss, expected.loss, kTolerance * std::abs(expected.loss));
  expect_close({{"logits", result.logits}}, {{"logits", expected.logits}}, "output");
  expect_close(result.gradients, expected.gradients, "gradient");
  expect_close(result.statistics, expected.statistics, "statistics");
  expect_close(result.parameters, expected.parameters, "values");
  return true;
}

void check(int64_t count, bool spread) {
  const auto alone = world().split(session().first() ? 0 : -1);
  int64_t compared = 0;
  for (const uint64_t seed : seeds(count)) {
    const Case c = draw_case(seed, spread);
    session().doing(summary(c));
    SCOPED_TRACE(summary(c));
    // Now and then as if each rank were on a node of its own, where halos travel during compute.
    std::shared_ptr<SharedMemory>& memory = world().context().shared_memory;
    const Scoped apart(memory, seed % 3 == 0 ? nullptr : memory);
    const StepResult result = train_in_layout(c.graph, c.layout, c.options, world());
    expect_planned_traffic(c, result.sent);
    EXPECT_TRUE(result.replicas_agree);
    expect_frozen_unchanged(c, result);
    if (equals_one_rank(c, result, alone)) ++compared;
    if (failed_anywhere()) return;
  }
  EXPECT_GE(compared, count / 2);
}

TEST(Transparency, OneStageEqualsOneRank) {
  check(80, /*spread=*/false);
}

TEST(Transparency, StagesReplicasAndDirectionsEqualOneRank) {
  check(80, /*spread=*/true);
}

/// Makes a classifier whose only batch norm sees pooled values.
Graph normalised_after_pooling() {
  Graph graph({2, {13, 17}});
  graph.begin_cell("maps");
  Value x = graph.add("conv", Convolution{.out_channels = 3, .kernel = {3, 3}}, {graph.input()});
  graph.begin_cell("head");
  x = graph.add("pool", GlobalAvgPool{}, {x});
  x = graph.add("conv", Convolution{.out_channels = 4, .kernel = {1, 1}}, {x});
  x = graph.add("norm", BatchNorm{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3}, {x}));
  return graph;
}

Case on_strips(int64_t batch, BatchNormScope scope) {
  Case c{.graph = normalised_after_pooling(),
         .layout = Layout(world().size(), {Grid{.rows = world().size()}}),
         .options = {.batch = {.batch = batch}}};
  c.options.trainer.cells = {{0, 2}};
  c.options.trainer.stage.batch_norm = scope;
  return c;
}

TEST(Transparency, TilesWithoutPooledValuesSayNothingOfTheirStatistics) {
  const Case c = on_strips(3, BatchNormScope::local);
  const auto alone = world().split(session().first() ? 0 : -1);
  EXPECT_TRUE(equals_one_rank(c, train_in_layout(c.graph, c.layout, c.options, world()), alone));
}

TEST(Transparency, NoBatchNormHasOneValue) {
  const Case c = on_strips(1, BatchNormScope::global);
  try {
    train_in_layout(c.graph, c.layout, c.options, world());
    FAIL() << "nothing is wrong with one value";
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "batch norm head.norm has one value a channel in a micro-batch of 1, and one value "
        "has no variance; use larger micro-batches");
  }
}

}  // namespace
}  // namespace mpi4dl::testing
