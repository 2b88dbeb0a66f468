#include "plan/balance.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "models/registry.hpp"
#include "plan/stage_plan.hpp"
#include "support/balances.hpp"

namespace mpi4dl {
namespace {

using testing::convolutions, testing::sizes, testing::small_resnet;

/// Returns the FLOPs of the busiest rank if the first stage has `first` cells and the second the
/// rest.
double slowest(const Graph& graph, const std::vector<Grid>& stages, int first) {
  std::vector<double> work(2, 0);
  for (const Node& node : graph.nodes()) {
    int64_t pixels = 1;
    for (const int64_t length : node.shape.space) pixels *= length;
    work[node.cell < first ? 0 : 1] += static_cast<double>(flops(graph, node, pixels));
  }
  return std::max(work[0] / stages[0].size(), work[1] / stages[1].size());
}

TEST(Balance, CoversAllCellsInOrder) {
  const Graph graph = small_resnet();
  for (int stages = 1; stages <= 5; ++stages) {
    const auto ranges = balance_cells(graph, std::vector<Grid>(stages));
    EXPECT_EQ(ranges.front().first, 0);
    EXPECT_EQ(ranges.back().last, static_cast<int>(graph.cells().size()));
    for (size_t i = 1; i < ranges.size(); ++i) EXPECT_EQ(ranges[i].first, ranges[i - 1].last);
    for (const int cells : sizes(ranges)) EXPECT_GT(cells, 0);
  }
}

TEST(Balance, NoOtherCutHasAFasterSlowestRank) {
  const Graph graph = small_resnet();
  for (const Grid& first : {Grid{1, 1, 1}, Grid{1, 2, 2}, Grid{2, 1, 1}}) {
    const std::vector<Grid> stages{first, {}};
    const double chosen = slowest(graph, stages, balance_cells(graph, stages)[0].last);
    for (int cut = 1; cut < static_cast<int>(graph.cells().size()); ++cut)
      EXPECT_LE(chosen, slowest(graph, stages, cut)) << cut;
  }
}

TEST(Balance, OfTheUserMustCountAllCells) {
  const Graph graph = small_resnet();
  EXPECT_EQ(sizes(given_balance(graph, {{}, {}}, {4, 7})), (std::vector<int>{4, 7}));
  EXPECT_THROW(given_balance(graph, {{}, {}}, {4, 6}), UsageError);
  EXPECT_THROW(given_balance(graph, {{}, {}}, {11}), UsageError);
  EXPECT_THROW(given_balance(graph, {{}, {}}, {11, 0}), UsageError);
}

TEST(Balance, NeedsACellForEachStage) {
  EXPECT_THROW(balance_cells(small_resnet(), std::vector<Grid>(12)), UsageError);
}

TEST(Balance, KeepsCellsThatShareParametersInOneStage) {
  const Graph graph = convolutions("abcbd");
  EXPECT_EQ(stage_begins(graph), (std::vector<bool>{true, true, false, false, true}));
  EXPECT_EQ(sizes(balance_cells(graph, std::vector<Grid>(2))), (std::vector<int>{1, 4}));
  EXPECT_EQ(sizes(balance_cells(graph, std::vector<Grid>(3))), (std::vector<int>{1, 3, 1}));
  EXPECT_EQ(sizes(balance_cells(convolutions("abcbd", /*frozen=*/true), std::vector<Grid>(2))),
            (std::vector<int>{2, 3}));
  try {
    balance_cells(graph, std::vector<Grid>(4));
    FAIL() << "cells that share a parameter are apart";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "a model of 5 cells cannot be split into 4 stages, but into 3 at most: cells that "
                 "share parameters are in one stage");
  }
}

TEST(Balance, CountsSmallLayersForTheTileThatHasThem) {
  const Graph graph =
      build_model({.name = "amoebanet", .image = {64, 64}, .num_layers = 3, .num_filters = 16});
  const CellWork work(graph);
  const Grid tiles{.batch = 2, .cols = 4};
  for (int cell = 0; cell < static_cast<int>(graph.cells().size()); ++cell) {
    const StagePlan plan(graph, tiles, /*batch=*/2, {}, {cell, cell + 1});
    double busiest = 0;
    for (const int id : plan.nodes()) {
      const Node& node = graph.node(id);
      const int ranks = plan.value(id).joined && node.shape.spatial() ? 2 : tiles.size();
      busiest += static_cast<double>(flops(graph, node, positions(node.shape.space))) / ranks;
    }
    EXPECT_NEAR(work.of({cell, cell + 1}, tiles), busiest, 1e-6 * busiest) << cell;
  }
}

/// Makes a model that pools 16x16 pixels to 2x2.
Graph pooled_to_few() {
  Graph graph({.channels = 3, .space = {16, 16}});
  graph.begin_cell("all");
  const Value x = graph.add("pool", AdaptiveAvgPool{{2, 2}}, {graph.input()});
  graph.set_output(graph.add("relu", Relu{}, {x}));
  return graph;
}

TEST(Balance, SharesPoolingByThePixelsThatAreRead) {
  const Graph graph = pooled_to_few();
  const Grid tiles{.batch = 2, .rows = 2, .cols = 4};
  const StagePlan plan(graph, tiles, /*batch=*/2, {});
  const auto pool = static_cast<double>(flops(graph, graph.node(1), 4));
  const auto relu = static_cast<double>(flops(graph, graph.node(2), 4));
  EXPECT_NEAR(CellWork(graph).of({0, 1}, tiles), pool / tiles.size() + relu / tiles.batch, 1e-9);
  for (int rank = 0; rank < tiles.size(); ++rank) {
    const RankCost cost = plan.cost(rank);
    const double alone = rank % 8 == 0 ? relu : 0;
    EXPECT_EQ(static_cast<double>(cost.flops), pool / 8 + alone) << rank;
    EXPECT_EQ(static_cast<double>(cost.lonely_flops), alone) << rank;
    EXPECT_EQ(cost.redundant_flops, 0) << rank;
  }
}

}  // namespace
}  // namespace mpi4dl
