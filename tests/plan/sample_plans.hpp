#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/stage_plan.hpp"

// Small graphs that have, between them, every kind of operator and of branch, and all grids and
// designs to plan them with.
namespace mpi4dl::testing {

inline Convolution conv(int64_t kernel, int64_t stride = 1, int64_t dilation = 1) {
  return {.out_channels = 2,
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {dilation * (kernel / 2), dilation * (kernel / 2)},
          .dilation = {dilation, dilation}};
}

/// Makes one 3x3 convolution a cell.
inline Graph chain(int cells, const Extents& image) {
  Graph graph({2, image});
  Value x = graph.input();
  for (int cell = 0; cell < cells; ++cell) {
    graph.begin_cell("cell" + std::to_string(cell));
    x = graph.add("conv", conv(3), {x});
  }
  graph.set_output(x);
  return graph;
}

/// Makes blocks with identity and projected shortcuts, and a head that pools globally.
inline Graph residual(const Extents& image) {
  Graph graph({3, image});
  graph.begin_cell("stem");
  Value x = graph.add("conv", conv(3), {graph.input()});
  for (int block = 0; block < 4; ++block) {
    graph.begin_cell("block" + std::to_string(block));
    const int64_t stride = block == 2 ? 2 : 1;
    Value y = graph.add("bn", BatchNorm{}, {x});
    y = graph.add("relu", Relu{}, {y});
    y = graph.add("conv1", conv(3, stride), {y});
    y = graph.add("conv2", conv(3), {y});
    if (stride == 2) x = graph.add("shortcut", conv(1, stride), {x});
    x = graph.add("add", Add{}, {x, y});
  }
  graph.begin_cell("head");
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 4}, {x}));
  return graph;
}

/// Makes windows that are wide, even, dilated, or hang over the border; the last pooling leaves few
/// rows.
inline Graph windows_of_all_kinds(const Extents& image) {
  Graph graph({2, image});
  graph.begin_cell("wide");
  const Convolution wide{.out_channels = 2, .kernel = {1, 7}, .padding = {0, 3}};
  const Convolution high{.out_channels = 2, .kernel = {7, 1}, .padding = {3, 0}};
  Value x = graph.add("1x7", wide, {graph.input()});
  x = graph.add("7x1", high, {x});
  graph.begin_cell("even");
  const Value even = graph.add("2x2", Convolution{.out_channels = 2, .kernel = {2, 2}}, {x});
  const Value dilated = graph.add("dilated", conv(3, 1, 2), {even});
  graph.begin_cell("pools");
  const Value largest =
      graph.add("max", MaxPool{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}, {dilated});
  const Value mean =
      graph.add("avg", AvgPool{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}, {even});
  x = graph.add("concat", Concat{}, {largest, mean});
  graph.begin_cell("head");
  x = graph.add("pool", AvgPool{.kernel = {5, 5}}, {x});
  x = graph.add("flatten", Flatten{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3}, {x}));
  return graph;
}

/// Goes down and up again, with a skip over the middle.
inline Graph hourglass(const Extents& image) {
  Graph graph({2, image});
  graph.begin_cell("down");
  const Value skip = graph.add("conv", conv(3), {graph.input()});
  Value x = graph.add("pool", MaxPool{.kernel = {2, 2}}, {skip});
  graph.begin_cell("middle");
  x = graph.add("conv", conv(5), {x});
  x = graph.add("norm", GroupNorm{}, {x});
  graph.begin_cell("up");
  const Value nearest = graph.add("nearest", Resize{.factor = {2, 2}}, {x});
  const Value bilinear =
      graph.add("bilinear", Resize{.factor = {2, 2}, .mode = Interpolation::bilinear}, {x});
  const TransposedConvolution twice{.out_channels = 2,
                                    .kernel = {3, 3},
                                    .stride = {2, 2},
                                    .padding = {1, 1},
                                    .output_padding = {1, 1}};
  const Value learned = graph.add("transposed", twice, {x});
  graph.begin_cell("join");
  x = graph.add("add", Add{}, {nearest, bilinear, learned, skip});
  graph.set_output(graph.add("conv", conv(3), {x}));
  return graph;
}

/// Pools to maps of few pixels, which have layers and come back beside the value.
inline Graph pyramid(const Extents& image) {
  Graph graph({2, image});
  graph.begin_cell("stem");
  Value x = graph.add("conv", conv(3), {graph.input()});
  graph.begin_cell("pyramid");
  std::vector<Value> all{x};
  for (const int64_t size : {1, 2, 3, 6}) {
    const std::string name = "size" + std::to_string(size);
    Value s = graph.add(name + ".pool", AdaptiveAvgPool{{size, size}}, {x});
    s = graph.add(name + ".conv", conv(3), {s});
    s = graph.add(name + ".bn", BatchNorm{}, {s});
    all.push_back(graph.add(name + ".back", AdaptiveAvgPool{image}, {s}));
  }
  Value s = graph.add("one.pool", GlobalAvgPool{}, {x});
  s = graph.add("one.conv", conv(1), {s});
  all.push_back(graph.add("one.back", Broadcast{image}, {s}));
  x = graph.add("concat", Concat{}, all);
  graph.begin_cell("head");
  graph.set_output(graph.add("conv", conv(3), {x}));
  return graph;
}

/// Calls `check` with plans of every sample graph for many grids, both designs and odd sizes.
template <typename Check>
void for_all_plans(Check&& check) {
  const std::vector<Graph> graphs{chain(3, {16, 12}),
                                  residual({16, 16}),
                                  residual({15, 21}),
                                  windows_of_all_kinds({24, 24}),
                                  windows_of_all_kinds({31, 23}),
                                  hourglass({16, 20}),
                                  pyramid({12, 17})};
  const std::vector<Grid> grids{{1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {1, 3, 2},
                                {1, 4, 4}, {1, 1, 5}, {2, 1, 1}, {2, 2, 3}, {3, 3, 1}};
  const std::vector<HaloDesign> designs{{.fused = false},
                                        {.fused = true},
                                        {.fused = true, .fused_layers = 2},
                                        {.fused = true, .fused_layers = 9}};
  for (const Graph& graph : graphs)
    for (const Grid& grid : grids)
      for (const HaloDesign& design : designs) {
        SCOPED_TRACE(graph.node(1).name + " and the rest, image " +
                     to_string(graph.shape(graph.input())) + ", grid " + to_string(grid) +
                     (design.fused ? ", fused " + std::to_string(design.fused_layers) : ""));
        check(StagePlan(graph, grid, /*batch=*/3, design));
        if (::testing::Test::HasFatalFailure()) return;
      }
}

inline int node_named(const Graph& graph, const std::string& name) {
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    if (graph.node(static_cast<int>(id)).name == name) return static_cast<int>(id);
  ADD_FAILURE() << "no node is named " << name;
  return 0;
}

inline std::vector<std::string> names_of(const StagePlan& plan, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (const int id : nodes) names.push_back(plan.graph().node(id).name);
  return names;
}

/// Returns the values that are exchanged.
inline std::vector<std::string> exchanges(const StagePlan& plan) {
  std::vector<int> exchanged;
  for (const int id : plan.nodes())
    if (plan.value(id).exchanged()) exchanged.push_back(id);
  return names_of(plan, exchanged);
}

}  // namespace mpi4dl::testing
