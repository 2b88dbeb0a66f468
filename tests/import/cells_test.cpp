// Where an imported model is cut into cells, and what they and their nodes are called.
#include "import/cells.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"

namespace mpi4dl {
namespace {

/// Writes a draft of convolutions, each in a module of its own.
struct Writer {
  Writer() { draft.nodes.push_back({.op = Input{{4, {16, 16}}}, .shape = {4, {16, 16}}}); }
  void convolution(const std::string& module, int64_t kernel = 3) {
    add(
        Convolution{
            .out_channels = 4, .kernel = {kernel, kernel}, .padding = {kernel / 2, kernel / 2}},
        module);
  }
  void add(const Operator& op, const std::string& module) {
    const int last = static_cast<int>(draft.nodes.size()) - 1;
    DraftNode node{
        .op = op, .inputs = {last}, .module = module, .label = fmt::format("value{}", last)};
    node.shape = result_shape(op, draft.input_shapes(node));
    draft.nodes.push_back(node);
    draft.output = last + 1;
  }
  Draft draft;
};

TEST(Cells, AreTheLargestModulesWithASixteenthOfTheWork) {
  Writer writer;
  for (int block = 0; block < 20; ++block) {
    const std::string module = fmt::format("stage{}.{}", block / 10, block % 10);
    writer.convolution(module + ".conv");
    writer.add(Relu{}, module);
  }
  const Graph graph = cut_into_cells(writer.draft, 0);
  ASSERT_EQ(graph.cells().size(), 20);
  EXPECT_EQ(graph.cells()[0], "stage0.0");
  EXPECT_EQ(graph.cells()[19], "stage1.9");
  EXPECT_EQ(graph.node(1).name, "stage0.0.conv");
  EXPECT_EQ(graph.node(2).name, "stage0.0.value1");
}

TEST(Cells, TakeInWhatStandsBetweenModules) {
  Writer writer;
  writer.add(Relu{}, "");
  writer.convolution("a");
  writer.add(Relu{}, "");
  writer.convolution("b");
  writer.add(Relu{}, "");
  const Graph graph = cut_into_cells(writer.draft, 0);
  EXPECT_EQ(graph.cells(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(graph.node(1).name, "a.value0");
  EXPECT_EQ(graph.node(3).cell, 1);
  EXPECT_EQ(graph.node(5).cell, 1);
}

TEST(Cells, AreAboutAsManyAsAskedFor) {
  Writer writer;
  for (int block = 0; block < 20; ++block) writer.convolution(fmt::format("blocks.{}.conv", block));
  for (const int cells : {1, 3, 7, 20})
    EXPECT_EQ(cut_into_cells(writer.draft, cells).cells().size(), cells);
}

TEST(Cells, OfAModuleThatComesBackHaveNamesOfTheirOwn) {
  Writer writer;
  writer.convolution("a");
  writer.convolution("b");
  writer.convolution("a");
  const Graph graph = cut_into_cells(writer.draft, 0);
  EXPECT_EQ(graph.cells(), (std::vector<std::string>{"a", "b", "a_2"}));
}

TEST(Draft, DropsNodesOnWhichNothingDepends) {
  Writer writer;
  writer.convolution("a");
  writer.convolution("b");
  writer.draft.output = 1;
  EXPECT_EQ(without_dead_nodes(writer.draft).nodes.size(), 2);
}

}  // namespace
}  // namespace mpi4dl
