// Where exchanges go, and what they save and cost.
#include <fmt/format.h>

#include <algorithm>

#include "graph/operators.hpp"
#include "models/amoebanet.hpp"
#include "models/resnet.hpp"
#include "sample_plans.hpp"

namespace mpi4dl {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

HaloDesign fused(int layers) {
  return {.fused = true, .fused_layers = layers};
}

/// Returns the nodes of the stage that read `value`.
std::vector<int> readers(const StagePlan& plan, int value) {
  std::vector<int> found;
  for (const int id : plan.nodes()) {
    const std::vector<int>& inputs = plan.graph().node(id).inputs;
    if (std::ranges::count(inputs, value) > 0) found.push_back(id);
  }
  return found;
}

template <typename Check>
void for_all_plans_of_models(const HaloDesign& design, Check&& check) {
  const std::vector<Graph> models{
      resnet({.image = {64, 64}, .resnet_version = 1, .depth = 14}),
      resnet({.image = {100, 70}, .depth = 20, .global_pool_head = true}),
      amoebanet({.image = {127, 96}, .num_layers = 3, .num_filters = 8})};
  for (const Graph& graph : models)
    for (const Grid& grid : {Grid{1, 2, 2}, Grid{1, 1, 3}, Grid{2, 3, 1}}) {
      SCOPED_TRACE(graph.node(1).name + ", grid " + to_string(grid));
      check(StagePlan(graph, grid, 2, design));
    }
}

void expect_nothing_redundant(const StagePlan& plan) {
  for (const int id : plan.nodes()) ASSERT_EQ(plan.value(id).computed, plan.value(id).owned);
  for (int rank = 0; rank < plan.grid().size(); ++rank)
    ASSERT_EQ(plan.cost(rank).redundant_flops, 0);
}

TEST(Design1, ComputesNothingTwice) {
  for_all_plans_of_models({}, expect_nothing_redundant);
}

TEST(Design1, ExchangesOnlyWhatOperatorsReadFromNeighbours) {
  for_all_plans_of_models({}, [](const StagePlan& plan) {
    for (const int id : plan.nodes())
      for (const int reader : readers(plan, id)) {
        const bool looks_around = !properties(plan.graph().node(reader).op).pointwise;
        ASSERT_TRUE(looks_around || plan.value(reader).joined || !plan.reads_extended(id, reader))
            << plan.graph().node(reader).name;
      }
  });
}

TEST(Design1, ExchangesBeforeEveryWindowOperator) {
  const Graph graph = residual({16, 16});
  // A 1x1 convolution with stride 2 reads its own tile only: 16 rows are cut where 8 are.
  EXPECT_EQ(exchanges(StagePlan(graph, {.rows = 2, .cols = 2}, 1, {})),
            (Names{"block0.relu", "block0.conv1", "block1.relu", "block1.conv1", "block2.relu",
                   "block2.conv1", "block3.relu", "block3.conv1"}));
}

TEST(Design1, ExchangesBeforeAStridedOperatorWhereTilesDoNotMatch) {
  // 15 rows are cut at 7 and their 8 results at 4: tile 1 begins with row 8, and row 7 is unused;
  // 13 rows are cut at 6 and their 7 results at 3: tile 1 needs nothing either. 14 at 7 and 7 at 3:
  // tile 1 begins with row 6, which is tile 0's.
  const auto exchanged = [](int64_t rows) {
    Graph graph({1, {rows, 4}});
    graph.begin_cell("all");
    const Value x = graph.add("relu", Relu{}, {graph.input()});
    graph.set_output(graph.add("conv", conv(1, 2), {x}));
    return exchanges(StagePlan(graph, {.rows = 2}, 1, {}));
  };
  EXPECT_EQ(exchanged(15), Names{});
  EXPECT_EQ(exchanged(13), Names{});
  EXPECT_EQ(exchanged(14), Names{"all.relu"});
}

int group_of(const StagePlan& plan, int node, int fused_layers) {
  return plan.graph().node(node).cell / fused_layers;
}

/// What is exchanged inside a group has not read neighbouring pixels there before.
TEST(Design2, ExchangesOnEachPathThroughAGroupOnce) {
  for (const int layers : {1, 2, 4, 100})
    for_all_plans_of_models(fused(layers), [&](const StagePlan& plan) {
      std::vector<bool> has_read(plan.graph().nodes().size(), false);
      for (const int id : plan.nodes()) {
        const Node& node = plan.graph().node(id);
        if (plan.value(id).joined) continue;
        has_read[id] = !properties(node.op).pointwise;
        for (const int from : node.inputs) {
          if (group_of(plan, from, layers) != group_of(plan, id, layers)) continue;
          ASSERT_FALSE(has_read[from] && plan.reads_extended(from, id)) << node.name;
          if (has_read[from]) has_read[id] = true;
        }
      }
    });
}

/// Makes cells as in ResNet v2: batch norm, ReLU, two convolutions, and a skip around them.
Graph pre_activated(int cells) {
  Graph graph({2, {32, 32}});
  graph.begin_cell("stem");
  Value x = graph.add("conv", conv(3), {graph.input()});
  for (int cell = 0; cell < cells; ++cell) {
    graph.begin_cell(fmt::format("cell{}", cell));
    Value y = graph.add("bn", BatchNorm{}, {x});
    y = graph.add("relu", Relu{}, {y});
    y = graph.add("conv1", conv(3), {y});
    y = graph.add("conv2", conv(3), {y});
    x = graph.add("add", Add{}, {x, y});
  }
  graph.set_output(x);
  return graph;
}

TEST(Design2, ExchangesBeforeTheFirstWindowOfACell) {
  const Graph graph = pre_activated(2);
  const StagePlan plan(graph, {.cols = 2}, 1, fused(1));
  EXPECT_EQ(exchanges(plan), (Names{"cell0.relu", "cell1.relu"}));
  const ValuePlan& relu = plan.value(node_named(graph, "cell1.relu"));
  EXPECT_EQ(relu.computed[0][3], (Interval{0, 16}));
  EXPECT_EQ(relu.extended[0][3], (Interval{0, 18}));
}

/// The second cell of a group reads the first one's skip with margins too.
TEST(Design2, ExchangesAtTheBorderWhereFewerValuesCrossIt) {
  const Graph graph = pre_activated(5);
  const StagePlan plan(graph, {.cols = 2}, 1, fused(2));
  EXPECT_EQ(exchanges(plan), (Names{"cell0.add", "cell2.add"}));
}

TEST(Design2, ExchangesOnceBetweenGroupsOfAChain) {
  const Graph graph = chain(12, {48, 48});
  for (int layers = 1; layers <= 13; ++layers) {
    const StagePlan plan(graph, {.rows = 2, .cols = 2}, 1, fused(layers));
    const size_t groups = (12 + layers - 1) / layers;
    EXPECT_EQ(exchanges(plan).size(), groups - 1) << layers;
    EXPECT_EQ(plan.cost(0).messages, 6 * (groups - 1)) << layers;
  }
}

TEST(Design2, FusingMoreMeansFewerExchangesAndMoreRedundantWork) {
  for_all_plans_of_models({}, [](const StagePlan& design1) {
    size_t fewest = exchanges(design1).size() + 1;
    int64_t redundant = -1;
    for (const int layers : {1, 2, 4}) {
      const StagePlan plan(design1.graph(), design1.grid(), design1.batch(), fused(layers));
      EXPECT_LT(exchanges(plan).size(), fewest) << layers;
      EXPECT_GT(plan.cost(0).redundant_flops, redundant) << layers;
      fewest = exchanges(plan).size();
      redundant = plan.cost(0).redundant_flops;
    }
  });
}

TEST(Design2, OneGroupIsFedByItsInputAlone) {
  const Graph graph = residual({64, 64});
  const StagePlan plan(graph, {.rows = 2}, 1, fused(100));
  EXPECT_EQ(exchanges(plan), Names{});
  const auto rows = [&](const char* name) {
    return plan.value(node_named(graph, name)).computed[0][2].end;
  };
  EXPECT_EQ(rows("block3.add"), 16);
  EXPECT_EQ(rows("block3.conv1"), 16 + 1);
  EXPECT_EQ(rows("block2.conv1"), 16 + 3);
  EXPECT_EQ(rows("block2.relu"), 2 * 19);  // the last window begins at 35 and has 3 rows
  EXPECT_EQ(rows("stem.conv"), 38 + 4);
  EXPECT_EQ(rows("input"), 42 + 1);
}

TEST(Design2, MarginsGrowAgainstTheFlow) {
  const Graph graph = chain(4, {32, 32});
  const StagePlan plan(graph, {.cols = 2}, 1, fused(2));
  const auto computed = [&](const char* name) {
    return plan.value(node_named(graph, name)).computed[0][3];
  };
  EXPECT_EQ(computed("cell3.conv"), (Interval{0, 16}));
  EXPECT_EQ(computed("cell2.conv"), (Interval{0, 17}));
  EXPECT_EQ(computed("cell1.conv"), (Interval{0, 16}));
  EXPECT_EQ(plan.value(node_named(graph, "cell1.conv")).extended[0][3], (Interval{0, 18}));
  EXPECT_EQ(computed("cell0.conv"), (Interval{0, 17}));
}

/// cell0 makes a value that cell1 convolves and that cell3, far away, adds.
Graph long_skip() {
  Graph graph({2, {32, 32}});
  graph.begin_cell("cell0");
  const Value skip = graph.add("conv", conv(3), {graph.input()});
  graph.begin_cell("cell1");
  Value x = graph.add("conv", conv(3), {skip});
  graph.begin_cell("cell2");
  x = graph.add("conv", conv(3), {x});
  graph.begin_cell("cell3");
  x = graph.add("conv0", conv(3), {x});
  x = graph.add("add", Add{}, {x, skip});
  x = graph.add("conv1", conv(3), {x});
  x = graph.add("conv2", conv(3), {x});
  graph.set_output(x);
  return graph;
}

TEST(Skip, OverGroupsIsExchangedOnceForItsFarthestReader) {
  const Graph graph = long_skip();
  const StagePlan plan(graph, {.cols = 2}, 1, fused(1));
  EXPECT_EQ(exchanges(plan), (Names{"cell0.conv", "cell1.conv", "cell2.conv"}));
  // cell1 needs one column more, the addition two for the convolutions after it.
  EXPECT_EQ(plan.value(node_named(graph, "cell0.conv")).extended[0][3], (Interval{0, 18}));
  EXPECT_EQ(plan.needed(node_named(graph, "cell1.conv"), 0, 0)[3], (Interval{0, 17}));
  EXPECT_EQ(plan.needed(node_named(graph, "cell3.add"), 1, 0)[3], (Interval{0, 18}));
}

TEST(Skip, IntoALaterGroupLeavesTheOwnGroupToItsMargins) {
  const Graph graph = long_skip();
  const StagePlan plan(graph, {.cols = 2}, 1, fused(2));
  const int skip = node_named(graph, "cell0.conv");
  EXPECT_EQ(plan.value(skip).computed[0][3], (Interval{0, 17}));
  EXPECT_FALSE(plan.reads_extended(skip, node_named(graph, "cell1.conv")));
  EXPECT_TRUE(plan.reads_extended(skip, node_named(graph, "cell3.add")));
}

TEST(Skip, ThatIsComputedFarEnoughAnywayIsNotExchanged) {
  // All readers need one column: cell1, of the same group, has made its producer compute it.
  Graph graph({2, {32, 32}});
  graph.begin_cell("cell0");
  const Value skip = graph.add("conv", conv(3), {graph.input()});
  graph.begin_cell("cell1");
  const Value x = graph.add("conv", conv(3), {skip});
  graph.begin_cell("cell2");
  graph.set_output(graph.add("add", Add{}, {x, skip}));
  const StagePlan plan(graph, {.cols = 2}, 1, fused(2));
  EXPECT_EQ(exchanges(plan), Names{});
}

/// ResNet-110 on 1,024 tiles must plan within a second.
TEST(LargeGrid, IsPlannedWithAllItsMessages) {
  const Graph graph = resnet({.image = {2048, 2048}});
  const Grid grid{.rows = 32, .cols = 32};
  const RankCost design1 = StagePlan(graph, grid, 1, {}).cost(500);
  const RankCost design2 = StagePlan(graph, grid, 1, fused(4)).cost(500);
  EXPECT_EQ(design1.redundant_flops, 0);
  EXPECT_GT(design2.redundant_flops, 0);
  EXPECT_LT(5 * design2.messages, design1.messages);
}

}  // namespace
}  // namespace mpi4dl
