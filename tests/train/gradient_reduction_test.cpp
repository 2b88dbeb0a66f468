#include "train/gradient_reduction.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/scoped.hpp"
#include "support/whole_reduction.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

using testing::Scoped;

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

/// Makes parameters to whose gradients rank r has added r + 1, and which it has measured as r + 1
/// over (r + 1) images.
Parameters some_sums(const Graph& graph) {
  std::vector<int> nodes;
  for (int id = 1; id < static_cast<int>(graph.nodes().size()); ++id) nodes.push_back(id);
  Parameters parameters(graph, nodes, at::kDouble, 1, world().context().backend);
  const int64_t mine = world().rank() + 1;
  for (const auto& [name, gradient] : parameters.gradients())
    gradient.fill_(static_cast<double>(mine));
  for (const int node : nodes)
    if (std::holds_alternative<BatchNorm>(graph.node(node).op)) {
      const at::Tensor measured =
          at::full({2}, static_cast<double>(mine), backend().options(at::kDouble));
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
  GradientReduction reduction(parameters, ShardedUpdate(parameters, world()),
                              {.bucket_bytes = GetParam()});
  for (const int cell : {2, 1, 0}) reduction.add(cell);
  reduction.finish();
  expect_sums(parameters);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Buckets, ::testing::Values(1, 500, int64_t{1} << 30));

TEST(GradientReduction, AddsWhatDidNotCome) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  GradientReduction reduction(parameters, ShardedUpdate(parameters, world()), {.bucket_bytes = 1});
  if (world().rank() == 0) reduction.add(2);
  reduction.finish();
  expect_sums(parameters);
}

TEST(GradientReduction, ForgottenGradientsAreZero) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  parameters.clear();
  const std::vector<int> cells = parameters.cells();
  parameters.complete_gradients_of_cell(cells.back());
  for (const auto& [name, gradient] : parameters.gradients())
    if (name.starts_with("third")) gradient.fill_(1);
  reduce(parameters, world());
  for (const auto& [name, gradient] : parameters.gradients()) {
    const int sum = name.starts_with("third") ? world().size() : 0;
    EXPECT_TRUE(gradient.eq(sum).all().item<bool>()) << name;
  }
}

/// Expects a gradient with more digits than float16 has, and statistics that sum up to as many.
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
    const ShardedUpdate update(parameters, nodes);
    GradientReduction reduction(parameters, update, {.bucket_bytes = bucket_bytes, .half = true});
    for (const int cell : {2, 1, 0}) reduction.add(cell);
    reduction.finish();
    expect_sums(parameters);
    for (const auto& [name, gradient] : parameters.gradients()) gradient.fill_(1 + 1e-5);
    GradientReduction(parameters, update, {.bucket_bytes = bucket_bytes, .half = true}).finish();
    expect_digits(parameters, world().size() == 1 ? 1 + 1e-5 : world().size());
  }
}

TEST(GradientReduction, GradientsOfRanksOfANodeKeepAllDigits) {
  const Graph graph = three_cells();
  Parameters parameters = some_sums(graph);
  for (const auto& [name, gradient] : parameters.gradients()) gradient.fill_(1 + 0x1p-40);
  GradientReduction reduction(parameters, ShardedUpdate(parameters, world()), {.half = true});
  reduction.finish();
  expect_digits(parameters, world().size() * (1 + 0x1p-40));
}

}  // namespace
}  // namespace mpi4dl::testing
