// Random networks x random layouts: a training step on many ranks is that of one rank, sends what
// the plan says, and leaves the same statistics on every rank.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/agreement.hpp"
#include "support/describe.hpp"
#include "support/random_graph.hpp"
#include "train/step.hpp"

namespace mpi4dl::testing {
namespace {

constexpr double kTolerance = 1e-9;

struct Case {
  Graph graph;
  StepOptions step;
};

std::string summary(const Case& c) {
  const Grid& grid = c.step.grid;
  return fmt::format("seed {}, grid {}x{}x{}, batch {}, {}, {} steps\n{}", c.step.seed, grid.batch,
                     grid.rows, grid.cols, c.step.batch, describe(c.step.halo), c.step.steps,
                     describe(c.graph));
}

/// Between 9 and 40 pixels, or a small volume; two pixels for each tile at least.
Shape draw_image(Dice& dice, const Grid& grid) {
  const bool volume = dice.chance(0.1);
  const int64_t most = volume ? 18 : 40;
  Shape image{
      dice.pick(1, 3),
      {dice.pick(std::max(9, 2 * grid.rows), most), dice.pick(std::max(9, 2 * grid.cols), most)}};
  if (volume) image.space.insert(image.space.begin(), dice.pick(3, 5));
  return image;
}

Case draw_case(uint64_t seed, bool fused) {
  Dice dice(combine_keys(seed, world().size()));
  const Grid grid = dice.grid(world().size());
  return draw_until_it_fits([&] {
    Case c{.graph = random_graph(dice, draw_image(dice, grid)),
           .step = {.grid = grid,
                    .batch = dice.pick(grid.batch, grid.batch + 2),
                    .halo = {fused, fused ? static_cast<int>(dice.pick(1, 7)) : 1},
                    .seed = seed,
                    .steps = dice.chance(0.25) ? 2 : 1}};
    StagePlan(c.graph, c.step.grid, c.step.batch, c.step.halo);
    return c;
  });
}

void expect_planned_traffic(const Case& c, const Traffic& sent) {
  const StagePlan plan(c.graph, c.step.grid, c.step.batch, c.step.halo);
  const RankCost cost = plan.cost(world().rank());
  EXPECT_EQ(sent.messages, cost.messages * c.step.steps);
  EXPECT_EQ(sent.bytes, cost.elements_sent * c.step.steps * 8);
}

void expect_same_on_all_ranks(const std::map<std::string, at::Tensor>& statistics) {
  for (const auto& [name, mine] : statistics) {
    at::Tensor first = mine.clone();
    world().broadcast(first, 0);
    EXPECT_TRUE(at::equal(first, mine)) << name;
  }
}

using Tensors = std::map<std::string, at::Tensor>;

/// Each within the tolerance of the larger of its own norm and 1e-3 of the norm of all: in networks
/// this small, true zeros (a bias before a norm, a mean after one) are often hidden by rounding.
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

void expect_equal_to_one_rank(const Case& c, const StepResult& result,
                              const std::optional<Communicator>& alone) {
  if (!alone) return;
  StepOptions one_rank = c.step;
  one_rank.grid = {};
  const StepResult expected = run_steps(c.graph, one_rank, *alone);
  EXPECT_NEAR(result.loss, expected.loss, kTolerance * std::abs(expected.loss));
  expect_close({{"logits", result.logits}}, {{"logits", expected.logits}}, "output");
  expect_close(result.gradients, expected.gradients, "gradient");
  expect_close(result.statistics, expected.statistics, "statistics");
}

void check(int64_t count, bool fused) {
  const auto alone = world().split(session().first() ? 0 : -1);
  for (const uint64_t seed : seeds(count)) {
    const Case c = draw_case(seed, fused);
    session().doing(summary(c));
    SCOPED_TRACE(summary(c));
    const StepResult result = run_steps(c.graph, c.step, world());
    expect_planned_traffic(c, result.sent);
    expect_same_on_all_ranks(result.statistics);
    expect_equal_to_one_rank(c, result, alone);
    if (failed_anywhere()) return;
  }
}

TEST(Transparency, HalosAtEveryLayerEqualOneRank) {
  check(40, /*fused=*/false);
}

TEST(Transparency, FusedHalosEqualOneRank) {
  check(60, /*fused=*/true);
}

}  // namespace
}  // namespace mpi4dl::testing
