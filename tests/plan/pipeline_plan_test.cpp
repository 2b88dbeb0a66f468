#include "plan/pipeline_plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"

namespace mpi4dl {
namespace {

Convolution window(int64_t channels) {
  return {.out_channels = channels, .kernel = {3, 3}, .padding = {1, 1}};
}

/// Makes three cells, of which the last one reads the first one's result, too.
Graph with_long_skip() {
  Graph graph({.channels = 1, .space = {8, 8}});
  graph.begin_cell("a");
  const Value a = graph.add("conv", window(2), {graph.input()});
  graph.begin_cell("b");
  const Value b = graph.add("conv", window(2), {a});
  graph.begin_cell("c");
  const Value c = graph.add("add", Add{}, {a, b});
  const Value d = graph.add("conv", window(2), {c});
  graph.set_output(
      graph.add("linear", Linear{.out_features = 2}, {graph.add("flatten", Flatten{}, {d})}));
  return graph;
}

TEST(PipelinePlan, SendsASkipStraightToItsReader) {
  const Graph graph = with_long_skip();
  const PipelinePlan plan(graph, std::vector<Grid>(3), {{0, 1}, {1, 2}, {2, 3}}, 2, {});
  EXPECT_EQ(plan.transfers(), (std::vector<Transfer>{{1, 0, 1}, {1, 0, 2}, {2, 1, 2}}));
  EXPECT_EQ(plan.cost().messages, 2 * 3);
  EXPECT_EQ(plan.cost().elements, 2 * 3 * (2 * 2 * 8 * 8));
}

TEST(PipelinePlan, GivesAReaderTheMarginsItNeeds) {
  const Graph graph = with_long_skip();
  const PipelinePlan plan(graph, {{}, {.rows = 2}}, {{0, 1}, {1, 3}}, 1, {});
  ASSERT_EQ(plan.transfers().size(), 1U);
  const auto needed = plan.needed(plan.transfers()[0]);
  ASSERT_EQ(needed.size(), 3U);  // positions: one rank, then two tiles
  EXPECT_TRUE(needed[0].empty());
  EXPECT_EQ(needed[1], (std::vector<Box>{{{0, 1}, {0, 2}, {0, 5}, {0, 8}}}));
  EXPECT_EQ(needed[2], (std::vector<Box>{{{0, 1}, {0, 2}, {3, 8}, {0, 8}}}));
}

TEST(PipelinePlan, RefusesAParameterThatStagesShare) {
  Graph graph({.channels = 2, .space = {8, 8}});
  Value x = graph.input();
  for (const char* cell : {"a", "b", "c"}) {
    graph.begin_cell(cell);
    const bool shares = cell != std::string("b");
    x = graph.add("conv", window(2), {x}, {{.name = shares ? "twice.weight" : ""}});
  }
  graph.set_output(x);
  const std::vector<CellRange> apart{{0, 1}, {1, 3}}, together{{0, 3}};
  EXPECT_NO_THROW(PipelinePlan(graph, std::vector<Grid>(1), together, 1, {}));
  try {
    const PipelinePlan plan(graph, std::vector<Grid>(2), apart, 1, {});
    FAIL() << "it was planned";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "cells a and c share parameter twice.weight, but are in stages 0 and 1; balance "
                 "the cells so that they are in one stage");
  }
}

TEST(PipelinePlan, AllowsAFrozenParameterThatStagesShare) {
  Graph graph({.channels = 2, .space = {8, 8}});
  Value x = graph.input();
  for (const char* cell : {"a", "b"}) {
    graph.begin_cell(cell);
    x = graph.add("conv", window(2), {x}, {{.name = "twice.weight", .frozen = true}});
  }
  graph.set_output(x);
  const PipelinePlan plan(graph, std::vector<Grid>(2), {{0, 1}, {1, 2}}, 1, {});
  EXPECT_EQ(plan.transfers(), (std::vector<Transfer>{{1, 0, 1}}));
}

TEST(PipelinePlan, CarriesBothStatesOfAmoebaNet) {
  const Graph graph =
      build_model({.name = "amoebanet", .image = {64, 64}, .num_layers = 3, .num_filters = 32});
  const std::vector<Grid> grids(2);
  const PipelinePlan plan(graph, grids, {{0, 5}, {5, 9}}, 1, {});
  EXPECT_EQ(plan.transfers().size(), 2U);
}

TEST(PipelinePlan, OwnsAndNeedsTheWholeOfEveryTransfer) {
  const Graph graph = build_model({.name = "resnet", .image = {32, 32}, .depth = 29});
  const std::vector<Grid> grids{{.rows = 2, .cols = 2}, {.batch = 2}, {}};
  const PipelinePlan plan(graph, grids, balance_cells(graph, grids), 2, {});
  for (const Transfer& transfer : plan.transfers()) {
    int64_t owned = 0, needed = 0;
    for (const auto& boxes : plan.owned(transfer))
      for (const Box& box : boxes) owned += box.elements();
    for (const auto& boxes : plan.needed(transfer))
      for (const Box& box : boxes) needed += box.elements();
    EXPECT_EQ(owned, Box::whole(plan.stages()[0].full_shape(transfer.value)).elements());
    EXPECT_GE(needed, owned);
  }
}

}  // namespace
}  // namespace mpi4dl
