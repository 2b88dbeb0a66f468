#include "train/gradient_reduction.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/scoped.hpp"
#include "support/world.hpp"
#include "train/optimizer.hpp"

namespace mpi4dl {
namespace {

using testing::Scoped;
using testing::world;

Graph three_cells() {
  Graph graph({.channels = 2, .space = {6, 6}});
  Value x = graph.input();
  for (const char* cell : {"first", "second", "third"}) {
    graph.begin_cell(cell);
    x = graph.add("conv", Convolution{.out_channels = 2, .kernel = {3, 3}, .padding = {1, 1}}, {x});
    x = graph.add("bn", BatchNorm{}, {x});
  }
  graph.set_output(x);
  return graph;
}

/// Rank r has added r + 1 to every gradient, and measured r + 1 over (r + 1) images.
Parameters some_sums(const Graph& graph) {
  std::vector<int> nodes;
  for (int id = 1; id < static_cast<int>(graph.nodes().size()); ++id) nodes.push_back(id);
  Parameters parameters(graph, nodes, at::kDouble, 1);
  const int64_t mine = world().rank() + 1;
  for (const auto& [name, gradient] : parameters.gradients())
    gradient.fill_(static_cast<double>(mine));
  for (const int node : nodes)
    if (std::holds_alternative<BatchNorm>(graph.node(node).op)) {
      const at::Tensor measured = at::full({2}, static_cast<double>(mine), at::kDouble);
      parameters.add_statistics(node, {measured, measured}, mine);
    }
  return parameters;
}

void expect_sums(Parameters& parameters) {
  const int ranks = world().size();
  for (const auto& [name, gradient] : parameters.gradients())
    EXPECT_TRUE(gradient.eq(ranks * (ranks + 1) / 2).all().item<bool>()) << name;
  const double mean = (2.0 * ranks + 1) / 3;  // of 1..n, each weighted by itself
  parameters.update_statistics();
  for (const auto& [name, values] : parameters.statistics()) {
    const double start = name.ends_with("var") ? 1 : 0;
    EXPECT_TRUE(at::allclose(values, at::full_like(values, 0.9 * start + 0.1 * mean))) << name;
  }
}

class Buckets : public ::testing::TestWithParam<int64_t> {};

TEST_P(Buckets, SumAllCells) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  GradientReduction reduction(parameters, world(), {.bucket_bytes = GetParam()});
  for (const int cell : {2, 1, 0}) reduction.add(cell);
  reduction.finish();
  expect_sums(parameters);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Buckets, ::testing::Values(1, 500, int64_t{1} << 30));

TEST(GradientReduction, AddsWhatDidNotCome) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  GradientReduction reduction(parameters, world(), {.bucket_bytes = 1});
  if (world().rank() == 0) reduction.add(2);
  reduction.finish();
  expect_sums(parameters);
}

TEST(GradientReduction, ForgottenGradientsAreZero) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  parameters.clear();
  const std::vector<int> cells = parameters.cells();
  parameters.begin_gradients_of_cell(cells.back());
  for (const auto& [name, gradient] : parameters.gradients())
    if (name.starts_with("third")) gradient.fill_(1);
  reduce(parameters, world());
  for (const auto& [name, gradient] : parameters.gradients()) {
    const int sum = name.starts_with("third") ? world().size() : 0;
    EXPECT_TRUE(gradient.eq(sum).all().item<bool>()) << name;
  }
}

/// Enough parameters for slices, not a multiple of anything.
Graph wide_cell() {
  Graph graph({.channels = 2, .space = {5, 5}});
  graph.begin_cell("only");
  Value x = graph.add("flatten", Flatten{}, {graph.input()});
  x = graph.add("linear", Linear{.out_features = 503}, {x});
  graph.set_output(x);
  return graph;
}

void expect_same(const TensorMap& some, const TensorMap& others) {
  ASSERT_EQ(some.size(), others.size());
  for (const auto& [name, values] : some) EXPECT_TRUE(values.equal(others.at(name))) << name;
}

/// Each rank updates its slice, and has the others' afterwards: to the bit what it would have made
/// of all sums itself.
TEST(GradientReduction, RanksOfANodeShareTheUpdate) {
  const Graph graph = wide_cell();
  const auto& memory = world().context().shared_memory;
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const auto kind : {OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adamw}) {
      Parameters shared(graph, {1, 2}, type, 1, memory), alone(graph, {1, 2}, type, 1);
      Optimizer slices(shared, {.kind = kind}), whole(alone, {.kind = kind});
      for (int step = 0; step < 3; ++step) {
        alone.gradient_memory().zero_();
        for (int rank = 0; rank < world().size(); ++rank) {
          at::manual_seed(100 * step + rank);
          const at::Tensor drawn = at::randn(alone.gradient_memory().sizes());
          alone.gradient_memory().add_(drawn);
          if (rank == world().rank()) shared.gradient_memory().copy_(drawn);
        }
        GradientReduction reduction(shared, world(), {});
        reduction.finish();
        const bool sliced = world().slice_of(shared.gradient_memory()).has_value();
        EXPECT_EQ(sliced, world().size() > 1);
        const Interval part = reduction.complete();
        EXPECT_EQ(part.length() < shared.gradient_memory().numel(), sliced);
        slices.step(0.1, 1, part);
        whole.step(0.1);
        if (sliced) world().gather_slices(shared.value_memory());
      }
      expect_same(shared.trainable(), alone.trainable());
      if (world().size() > 1) slices.gather(world());
      expect_same(slices.state(), whole.state());
    }
}

/// A gradient with more digits than float16 has, and statistics that sum up to as many.
void expect_digits(Parameters& parameters, double expected) {
  for (const auto& [name, gradient] : parameters.gradients())
    EXPECT_TRUE(gradient.eq(expected).all().item<bool>()) << name << gradient;
}

TEST(GradientReduction, GradientsTravelAsHalfButStatisticsDoNot) {
  const Scoped<std::shared_ptr<SharedMemory>> apart(world().context().shared_memory, nullptr);
  const Communicator nodes = *world().split(0);
  const Graph graph = three_cells();
  for (const int64_t bucket_bytes : {1, 500, 1 << 30}) {
    Parameters parameters = some_sums(graph);
    GradientReduction reduction(parameters, nodes, {.bucket_bytes = bucket_bytes, .half = true});
    for (const int cell : {2, 1, 0}) reduction.add(cell);
    reduction.finish();
    expect_sums(parameters);
    for (const auto& [name, gradient] : parameters.gradients()) gradient.fill_(1 + 1e-5);
    GradientReduction(parameters, nodes, {.bucket_bytes = bucket_bytes, .half = true}).finish();
    expect_digits(parameters, world().size() == 1 ? 1 + 1e-5 : world().size());
  }
}

TEST(GradientReduction, GradientsOfRanksOfANodeKeepAllDigits) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  for (const auto& [name, gradient] : parameters.gradients()) gradient.fill_(1 + 0x1p-40);
  GradientReduction reduction(parameters, world(), {.half = true});
  reduction.finish();
  expect_digits(parameters, world().size() * (1 + 0x1p-40));
}

}  // namespace
}  // namespace mpi4dl
