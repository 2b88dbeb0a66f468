#include "graph/edit.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graph/parameter_names.hpp"
#include "graph/text.hpp"

namespace mpi4dl {
namespace {

const char* const kNet =
    "input 3x16x16\n"
    "cell stem\n"
    "stem.conv = convolution(input) out_channels=8 kernel=3x3 bias=false with conv1.weight\n"
    "stem.bn = batch_norm(stem.conv) with bn1.weight, bn1.bias\n"
    "stem.again = convolution(stem.bn) out_channels=8 kernel=3x3 bias=false\n"
    "cell head\n"
    "head.pool = global_average_pooling(stem.again)\n"
    "head.fc = linear(head.pool) out_features=10 with fc.weight, frozen fc.bias\n"
    "head.drop = dropout(head.fc)\n"
    "output head.drop\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

TEST(GraphEdit, OfNothingIsTheSameGraph) {
  const Graph graph = parse_graph(kNet);
  const auto nothing = [](const Node&, const NodeEdit&) {};
  EXPECT_EQ(to_text(edited(graph, graph.shape(graph.input()), nothing)), kNet);
}

TEST(GraphEdit, GivesImagesAnotherSize) {
  const Graph graph = with_image_size(parse_graph(kNet), {9, 31});
  EXPECT_EQ(to_text(graph), replaced(kNet, "3x16x16", "3x9x31"));
  EXPECT_EQ(graph.node(1).shape, (Shape{8, {7, 29}}));
  EXPECT_EQ(complaint([] { with_image_size(parse_graph(kNet), {2, 16}); }).substr(0, 40),
            "stem.conv (convolution) cannot read inpu");
}

TEST(GraphEdit, GivesTheLastLayerOtherClasses) {
  const Graph graph = parse_graph(kNet);
  EXPECT_EQ(class_layer(graph).name, "head.fc");
  EXPECT_EQ(to_text(with_classes(graph, 3)), replaced(kNet, "out_features=10", "out_features=3"));
  const Graph join = parse_graph(
      "input 2x4x4\ncell a\na.pool = global_average_pooling(input)\na.two = concat(a.pool, "
      "a.pool)\noutput a.two\n");
  EXPECT_EQ(complaint([&] { with_classes(join, 3); }),
            "the output a.two (concat) comes from no linear layer or convolution that could have "
            "another number of classes");
}

TEST(GraphEdit, OfClassesThatAreAConvolution) {
  const Graph graph = parse_graph(
      "input 2x4x4\ncell a\na.conv = convolution(input) out_channels=5 kernel=1x1\na.relu = "
      "relu(a.conv)\na.pool = global_average_pooling(a.relu)\noutput a.pool\n");
  const Graph three = with_classes(graph, 3);
  EXPECT_EQ(three.node(three.output()).shape.channels, 3);
  EXPECT_EQ(class_layer(three).name, "a.conv");
}

TEST(GraphEdit, FreezesParametersWhoeverSharesThem) {
  const Graph graph = parse_graph(
      "input 2x8x8\ncell a\na.one = convolution(input) out_channels=2 kernel=3x3 with w\na.two = "
      "convolution(a.one) out_channels=2 kernel=3x3 with w\noutput a.two\n");
  const Graph frozen = with_frozen(graph, {"w", "a.two.bias"});
  EXPECT_EQ(frozen.node(1).parameters[0].kind, ParameterKind::frozen);
  EXPECT_EQ(frozen.node(2).parameters[0].kind, ParameterKind::frozen);
  EXPECT_TRUE(frozen.node(1).parameters[1].trained());
  EXPECT_FALSE(frozen.node(2).parameters[1].trained());
}

TEST(GraphEdit, FreezesBatchNorms) {
  const Graph graph = with_frozen_batch_norms(parse_graph(kNet));
  EXPECT_TRUE(std::get<BatchNorm>(graph.node(2).op).frozen);
  EXPECT_EQ(graph.node(2).parameters[0].kind, ParameterKind::frozen);
  EXPECT_EQ(graph.node(2).parameters[1].kind, ParameterKind::frozen);
  EXPECT_TRUE(graph.node(2).parameters[2].statistic());
  EXPECT_EQ(to_text(parse_graph(to_text(graph))), to_text(graph));
  EXPECT_THROW(with_frozen_batch_norms(parse_graph("input 2x4x4\ncell a\na.pool = "
                                                   "global_average_pooling(input)\noutput "
                                                   "a.pool\n")),
               UsageError);
}

TEST(ParameterNames, MatchShellPatterns) {
  const Graph graph = parse_graph(kNet);
  const auto matching = [&](const std::string& pattern, AmongParameters among) {
    return matching_parameters(graph, pattern, among, "it");
  };
  EXPECT_EQ(matching("conv1.weight", AmongParameters::trained),
            (std::set<std::string>{"conv1.weight"}));
  EXPECT_EQ(
      matching("*.weight", AmongParameters::trained),
      (std::set<std::string>{"bn1.weight", "conv1.weight", "fc.weight", "stem.again.weight"}));
  EXPECT_EQ(matching("fc.*", AmongParameters::trained), (std::set<std::string>{"fc.weight"}));
  EXPECT_EQ(matching("fc.*", AmongParameters::all),
            (std::set<std::string>{"fc.bias", "fc.weight"}));
  EXPECT_EQ(matching("?n1.[wb]*", AmongParameters::trained),
            (std::set<std::string>{"bn1.bias", "bn1.weight"}));
}

TEST(ParameterNames, SayWhatIsNearWhereNothingMatches) {
  const Graph graph = parse_graph(kNet);
  const auto wrong = [&](const std::string& pattern, AmongParameters among) {
    return complaint([&] { matching_parameters(graph, pattern, among, "--it '" + pattern + "'"); });
  };
  EXPECT_EQ(wrong("conv1.wieght", AmongParameters::all),
            "--it 'conv1.wieght' matches no parameter of the model (did you mean conv1.weight?)");
  EXPECT_EQ(wrong("stme.*", AmongParameters::trained),
            "--it 'stme.*' matches no trained parameter of the model (did you mean stem.*?)");
  EXPECT_EQ(wrong("something else", AmongParameters::trained),
            "--it 'something else' matches no trained parameter of the model; there are "
            "conv1.weight, bn1.weight, bn1.bias, stem.again.weight, ...");
  EXPECT_EQ(wrong("*.running_mean", AmongParameters::trained).substr(0, 48),
            "--it '*.running_mean' matches no trained paramet");
}

}  // namespace
}  // namespace mpi4dl
