#include "models/resnet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

const Node* find_node(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.nodes(), name, &Node::name);
  return found == graph.nodes().end() ? nullptr : &*found;
}

Shape shape_of(const Graph& graph, const std::string& name) {
  const Node* node = find_node(graph, name);
  EXPECT_NE(node, nullptr) << name;
  return node == nullptr ? Shape{} : node->shape;
}

std::set<std::string> parameter_names(const Graph& graph, const std::string& cell) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters)
      if (parameter.trained() && graph.cells()[node.cell] == cell) names.insert(parameter.name);
  return names;
}

TEST(ResNet, HasTheParametersOfTheReference) {
  EXPECT_EQ(resnet({}).parameter_count(), 7'162'922);
  EXPECT_EQ(resnet({.resnet_version = 1, .depth = 20}).parameter_count(), 273'066);
}

TEST(ResNet, GrowsItsDefaultHeadWithTheImage) {
  const auto parameters = [](int64_t side, bool global) {
    return resnet({.image = {side, side}, .depth = 11, .global_pool_head = global})
        .parameter_count();
  };
  EXPECT_EQ(parameters(64, false) - parameters(32, false), 3 * 256 * 10);
  EXPECT_EQ(parameters(64, true), parameters(32, true));
  EXPECT_EQ(parameters(32, true), parameters(32, false));
}

TEST(ResNet, HasOneCellForEachBlockAndTwoMore) {
  for (int n = 1; n <= 4; ++n) {
    EXPECT_EQ(resnet({.resnet_version = 1, .depth = 6 * n + 2}).cells().size(), 3 * n + 2);
    EXPECT_EQ(resnet({.resnet_version = 2, .depth = 9 * n + 2}).cells().size(), 3 * n + 2);
  }
  EXPECT_EQ(resnet({.depth = 20}).cells(),
            (std::vector<std::string>{"stem", "stage0.block0", "stage0.block1", "stage1.block0",
                                      "stage1.block1", "stage2.block0", "stage2.block1", "head"}));
}

TEST(ResNet, HalvesTheImageInStages1And2) {
  const Graph graph = resnet({.image = {100, 127}, .classes = 7, .depth = 20});
  EXPECT_EQ(shape_of(graph, "stem.relu"), (Shape{16, {100, 127}}));
  EXPECT_EQ(shape_of(graph, "stage0.block1.add"), (Shape{64, {100, 127}}));
  EXPECT_EQ(shape_of(graph, "stage1.block0.r1.conv"), (Shape{64, {50, 64}}));
  EXPECT_EQ(shape_of(graph, "stage1.block1.add"), (Shape{128, {50, 64}}));
  EXPECT_EQ(shape_of(graph, "stage2.block1.r2.conv"), (Shape{128, {25, 32}}));
  EXPECT_EQ(shape_of(graph, "stage2.block1.add"), (Shape{256, {25, 32}}));
  EXPECT_EQ(shape_of(graph, "head.pool"), (Shape{256, {3, 4}}));
  EXPECT_EQ(graph.node(graph.output()).shape, (Shape{7, {}}));
}

TEST(ResNet, Version1HasTwoConvolutionsABlockAndActivatesAfterTheAddition) {
  const Graph graph = resnet({.resnet_version = 1, .depth = 14});
  EXPECT_EQ(shape_of(graph, "stage0.block0.relu"), (Shape{16, {32, 32}}));
  EXPECT_EQ(shape_of(graph, "stage2.block1.relu"), (Shape{64, {8, 8}}));
  EXPECT_EQ(find_node(graph, "stage0.block0.shortcut.conv"), nullptr);
  EXPECT_EQ(find_node(graph, "head.bn"), nullptr);
  EXPECT_EQ(
      parameter_names(graph, "stage1.block0"),
      (std::set<std::string>{
          "stage1.block0.r1.conv.weight", "stage1.block0.r1.conv.bias",
          "stage1.block0.r1.bn.weight", "stage1.block0.r1.bn.bias", "stage1.block0.r2.conv.weight",
          "stage1.block0.r2.conv.bias", "stage1.block0.r2.bn.weight", "stage1.block0.r2.bn.bias",
          "stage1.block0.shortcut.conv.weight", "stage1.block0.shortcut.conv.bias"}));
}

TEST(ResNet, Version2ActivatesBeforeEachConvolutionButTheVeryFirst) {
  const Graph graph = resnet({.depth = 20});
  EXPECT_EQ(find_node(graph, "stage0.block0.r1.bn"), nullptr);
  EXPECT_NE(find_node(graph, "stage0.block0.shortcut.conv"), nullptr);
  EXPECT_EQ(find_node(graph, "stage0.block1.relu"), nullptr);
  EXPECT_EQ(parameter_names(graph, "stage0.block1"),
            (std::set<std::string>{"stage0.block1.r1.bn.weight", "stage0.block1.r1.bn.bias",
                                   "stage0.block1.r1.conv.weight", "stage0.block1.r1.conv.bias",
                                   "stage0.block1.r2.bn.weight", "stage0.block1.r2.bn.bias",
                                   "stage0.block1.r2.conv.weight", "stage0.block1.r2.conv.bias",
                                   "stage0.block1.r3.bn.weight", "stage0.block1.r3.bn.bias",
                                   "stage0.block1.r3.conv.weight", "stage0.block1.r3.conv.bias"}));
  EXPECT_EQ(parameter_names(graph, "head"),
            (std::set<std::string>{"head.bn.weight", "head.bn.bias", "head.linear.weight",
                                   "head.linear.bias"}));
}

std::string complaint(const ModelOptions& options) {
  try {
    resnet(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ResNet, SaysWhichDepthsExist) {
  EXPECT_EQ(complaint({.depth = 100}),
            "ResNet version 2 needs a depth of 9n+2, not 100; the nearest: 92 and 101");
  EXPECT_EQ(complaint({.resnet_version = 1, .depth = 18}),
            "ResNet version 1 needs a depth of 6n+2, not 18; the nearest: 14 and 20");
  for (const int depth : {-7, 0, 2, 10})
    EXPECT_NE(complaint({.depth = depth}).find("the nearest: 11"), std::string::npos) << depth;
  EXPECT_EQ(complaint({.resnet_version = 3}), "ResNet has versions 1 and 2, not 3");
}

TEST(ResNet, SaysWhatToDoWithSmallImages) {
  EXPECT_EQ(complaint({.image = {28, 64}, .depth = 11}),
            "head.pool averages 8x8 windows, but its input is only 256x7x16: use images of at "
            "least 29x29 or a global pool head");
  EXPECT_EQ(complaint({.image = {29, 29}, .depth = 11}), "");
  EXPECT_EQ(complaint({.image = {4, 4}, .depth = 11, .global_pool_head = true}), "");
}

}  // namespace
}  // namespace mpi4dl
