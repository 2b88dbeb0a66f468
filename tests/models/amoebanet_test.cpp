#include "models/amoebanet.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

ModelOptions options(int layers, int64_t filters, Extents image = {128, 128}) {
  return {.image = std::move(image), .num_layers = layers, .num_filters = filters};
}

/// Returns the shape of each cell's output, by the cell's name.
std::map<std::string, std::string> outputs_of_cells(const Graph& graph) {
  std::map<std::string, std::string> outputs;
  for (const Node& node : graph.nodes()) outputs[graph.cells()[node.cell]] = to_string(node.shape);
  return outputs;
}

TEST(AmoebaNet, HasTheParametersOfTheReference) {
  EXPECT_EQ(amoebanet(options(18, 416)).parameter_count(), 312'433'690);
  EXPECT_EQ(amoebanet(options(18, 64)).parameter_count(), 7'447'690);
  EXPECT_EQ(amoebanet(options(6, 64)).parameter_count(), 2'686'346);
  EXPECT_EQ(amoebanet(options(3, 32)).parameter_count(), 391'354);
}

TEST(AmoebaNet, HasSixCellsMoreThanLayers) {
  for (const int layers : {3, 6, 9, 18})
    EXPECT_EQ(amoebanet(options(layers, 32)).cells().size(), layers + 6);
  EXPECT_EQ(amoebanet(options(3, 32)).cells(),
            (std::vector<std::string>{"stem1", "stem2", "stem3", "cell1", "cell2", "cell3", "cell4",
                                      "cell5", "classify"}));
}

TEST(AmoebaNet, HasTheShapesOfTheReference) {
  const std::map<std::string, std::string> expected{
      {"stem1", "16x64x64"},  {"stem2", "96x32x32"}, {"stem3", "192x16x16"}, {"cell1", "256x16x16"},
      {"cell2", "256x16x16"}, {"cell3", "384x8x8"},  {"cell4", "512x8x8"},   {"cell5", "512x8x8"},
      {"cell6", "768x4x4"},   {"cell7", "1024x4x4"}, {"cell8", "1024x4x4"},  {"classify", "10"}};
  EXPECT_EQ(outputs_of_cells(amoebanet(options(6, 64))), expected);
}

TEST(AmoebaNet, RunsOnImagesOfAnySize) {
  for (const Extents& image : std::vector<Extents>{{64, 96}, {100, 127}, {33, 61}, {127, 127}}) {
    const Graph graph = amoebanet(options(3, 32, image));
    EXPECT_EQ(graph.node(graph.output()).shape, (Shape{10, {}}));
    EXPECT_EQ(graph.parameter_count(), 391'354);
  }
}

/// Returns the cells before `cell` whose values it reads.
std::set<int> cells_read(const Graph& graph, int cell) {
  std::set<int> cells;
  for (const Node& node : graph.nodes())
    for (const int input : node.inputs)
      if (node.cell == cell && graph.node(input).cell != cell) cells.insert(graph.node(input).cell);
  return cells;
}

TEST(AmoebaNet, EveryCellReadsTheTwoBeforeIt) {
  const Graph graph = amoebanet(options(6, 64));
  const int last = static_cast<int>(graph.cells().size()) - 1;
  EXPECT_EQ(cells_read(graph, 1), (std::set<int>{0}));
  for (int cell = 2; cell < last; ++cell)
    EXPECT_EQ(cells_read(graph, cell), (std::set<int>{cell - 2, cell - 1})) << graph.cells()[cell];
  EXPECT_EQ(cells_read(graph, last), (std::set<int>{last - 1}));
}

TEST(AmoebaNet, NamesItsParametersByCellOperatorAndLayer) {
  const Graph graph = amoebanet(options(6, 64));
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters) shapes[parameter.name] = parameter.shape;
  using Dimensions = std::vector<int64_t>;
  EXPECT_EQ(shapes.at("stem1.conv.weight"), (Dimensions{16, 3, 3, 3}));
  EXPECT_EQ(shapes.at("stem2.op3.conv2.weight"), (Dimensions{8, 8, 3, 3}));
  EXPECT_EQ(shapes.at("cell1.s2.conv1.weight"), (Dimensions{32, 96, 1, 1}));
  EXPECT_EQ(shapes.at("cell1.s2.bn.running_var"), (Dimensions{64}));
  EXPECT_EQ(shapes.at("cell2.s2.conv.weight"), (Dimensions{64, 192, 1, 1}));
  EXPECT_EQ(shapes.at("cell2.op5.conv2.weight"), (Dimensions{16, 16, 1, 7}));
  EXPECT_EQ(shapes.at("cell2.op5.conv3.weight"), (Dimensions{16, 16, 7, 1}));
  EXPECT_EQ(shapes.at("cell3.op4.bn2.weight"), (Dimensions{32}));
  EXPECT_EQ(shapes.at("cell8.op9.conv.weight"), (Dimensions{256, 256, 1, 1}));
  EXPECT_EQ(shapes.at("classify.linear.weight"), (Dimensions{10, 1024}));
  EXPECT_FALSE(shapes.contains("stem1.conv.bias"));
}

TEST(AmoebaNet, PoolsAsTheReferenceDoes) {
  const Graph graph = amoebanet(options(3, 32));
  for (const Node& node : graph.nodes()) {
    if (const auto* average = std::get_if<AvgPool>(&node.op)) {
      EXPECT_FALSE(average->count_include_pad) << node.name;
    }
    if (const auto* max = std::get_if<MaxPool>(&node.op)) {
      EXPECT_TRUE(max->ceil_mode) << node.name;
    }
  }
}

std::string complaint(const ModelOptions& wrong) {
  try {
    amoebanet(wrong);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(AmoebaNet, SaysWhichLayersAndFiltersExist) {
  EXPECT_EQ(complaint(options(7, 64)),
            "AmoebaNet needs a multiple of 3 layers, not 7; the nearest: 6 and 9");
  EXPECT_EQ(complaint(options(0, 64)),
            "AmoebaNet needs a multiple of 3 layers, not 0; the nearest: 3");
  EXPECT_EQ(complaint(options(3, 63)),
            "AmoebaNet needs a multiple of 4 filters, at least 8, not 63; the nearest: 60 and 64");
}

}  // namespace
}  // namespace mpi4dl
