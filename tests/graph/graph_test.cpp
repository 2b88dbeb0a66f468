#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

Convolution conv3x3(int64_t out) {
  return {.out_channels = out, .kernel = {3, 3}, .padding = {1, 1}};
}

/// Returns a graph in its first cell, "stem".
Graph stem() {
  Graph graph({3, {16, 20}});
  graph.begin_cell("stem");
  return graph;
}

TEST(Graph, ReadsLikeTheNetwork) {
  Graph graph = stem();
  Value x = graph.add("conv", conv3x3(8), {graph.input()});
  const Value skip = x;
  graph.begin_cell("block");
  x = graph.add("bn", BatchNorm{}, {x});
  x = graph.add("add", Add{}, {x, skip});
  graph.set_output(x);

  EXPECT_EQ(graph.cells(), (std::vector<std::string>{"stem", "block"}));
  ASSERT_EQ(graph.nodes().size(), 4);
  EXPECT_EQ(graph.node(0).name, "input");
  EXPECT_EQ(graph.node(0).cell, 0);
  EXPECT_EQ(graph.node(1).name, "stem.conv");
  EXPECT_EQ(graph.node(1).cell, 0);
  EXPECT_EQ(graph.node(3).name, "block.add");
  EXPECT_EQ(graph.node(3).inputs, (std::vector<int>{2, 1}));
  EXPECT_EQ(graph.node(3).cell, 1);
  EXPECT_EQ(graph.shape(x), (Shape{8, {16, 20}}));
  EXPECT_EQ(graph.output(), 3);
}

std::vector<Parameter> parameters_of(const Operator& op, const Shape& image = {8, {16, 16}}) {
  Graph graph(image);
  graph.begin_cell("cell");
  return graph.node(graph.add("op", op, {graph.input()}).id).parameters;
}

void expect_parameter(const Parameter& parameter, const std::string& name,
                      const std::vector<int64_t>& shape, Init init) {
  EXPECT_EQ(parameter.name, name);
  EXPECT_EQ(parameter.shape, shape);
  EXPECT_EQ(parameter.init, init) << name;
}

TEST(Parameters, OfConvolutionStartByItsInputsAndKernel) {
  const auto all = parameters_of(Convolution{.out_channels = 12, .kernel = {1, 7}, .groups = 4});
  ASSERT_EQ(all.size(), 2);
  expect_parameter(all[0], "cell.op.weight", {12, 2, 1, 7}, Init::uniform_fan_in);
  expect_parameter(all[1], "cell.op.bias", {12}, Init::uniform_fan_in);
  EXPECT_EQ(all[0].fan_in, 14);
  EXPECT_EQ(all[1].fan_in, 14);
  EXPECT_EQ(all[0].elements(), 12 * 14);
}

TEST(Parameters, OfTransposedConvolutionStartAsTorchStartsThem) {
  const auto all =
      parameters_of(TransposedConvolution{.out_channels = 12, .kernel = {2, 2}, .groups = 2});
  ASSERT_EQ(all.size(), 2);
  expect_parameter(all[0], "cell.op.weight", {8, 6, 2, 2}, Init::uniform_fan_in);
  expect_parameter(all[1], "cell.op.bias", {12}, Init::uniform_fan_in);
  EXPECT_EQ(all[0].fan_in, 24);
  EXPECT_EQ(all[1].fan_in, 24);
}

TEST(Parameters, HaveNoBiasWhereNoneIsWanted) {
  EXPECT_EQ(parameters_of(Convolution{.kernel = {3, 3}, .bias = false}).size(), 1);
  EXPECT_EQ(parameters_of(TransposedConvolution{.kernel = {3, 3}, .bias = false}).size(), 1);
}

TEST(Parameters, OfLinear) {
  Graph graph({8, {2, 2}});
  graph.begin_cell("head");
  const Value flat = graph.add("flatten", Flatten{}, {graph.input()});
  const Value out = graph.add("linear", Linear{.out_features = 10}, {flat});
  const auto& all = graph.node(out.id).parameters;
  ASSERT_EQ(all.size(), 2);
  expect_parameter(all[0], "head.linear.weight", {10, 32}, Init::uniform_fan_in);
  expect_parameter(all[1], "head.linear.bias", {10}, Init::uniform_fan_in);
  EXPECT_EQ(all[0].fan_in, 32);
  EXPECT_EQ(all[1].fan_in, 32);
}

TEST(Parameters, OfBatchNormIncludeRunningStatistics) {
  const auto all = parameters_of(BatchNorm{});
  ASSERT_EQ(all.size(), 4);
  expect_parameter(all[0], "cell.op.weight", {8}, Init::ones);
  expect_parameter(all[1], "cell.op.bias", {8}, Init::zeros);
  expect_parameter(all[2], "cell.op.running_mean", {8}, Init::zeros);
  expect_parameter(all[3], "cell.op.running_var", {8}, Init::ones);
  EXPECT_TRUE(all[0].trained() && all[1].trained());
  EXPECT_FALSE(all[2].trained() || all[3].trained());
}

TEST(Parameters, OfGroupNormAreScaleAndShift) {
  const auto all = parameters_of(GroupNorm{.groups = 2});
  ASSERT_EQ(all.size(), 2);
  expect_parameter(all[0], "cell.op.weight", {8}, Init::ones);
  expect_parameter(all[1], "cell.op.bias", {8}, Init::zeros);
}

TEST(Parameters, OfNormsWithoutAffineAreStatisticsAlone) {
  const auto all = parameters_of(BatchNorm{.affine = false});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].name, "cell.op.running_mean");
  EXPECT_EQ(all[1].name, "cell.op.running_var");
  EXPECT_TRUE(parameters_of(GroupNorm{.affine = false}).empty());
  EXPECT_TRUE(parameters_of(ChannelNorm{.affine = false}).empty());
}

TEST(Parameters, OfPReluAreOneOrOneForEachChannel) {
  expect_parameter(parameters_of(PRelu{}).at(0), "cell.op.weight", {1}, Init::quarters);
  expect_parameter(parameters_of(PRelu{8}).at(0), "cell.op.weight", {8}, Init::quarters);
}

TEST(Parameters, OfChannelScaleAreAFactorAndPerhapsAShift) {
  EXPECT_EQ(parameters_of(ChannelScale{}).size(), 1);
  const auto all = parameters_of(ChannelScale{.bias = true});
  ASSERT_EQ(all.size(), 2);
  expect_parameter(all[0], "cell.op.weight", {8}, Init::ones);
  expect_parameter(all[1], "cell.op.bias", {8}, Init::zeros);
}

TEST(Parameters, AreNoneElsewhere) {
  for (const Operator& op :
       {Operator{Relu{}}, Operator{MaxPool{.kernel = {2, 2}}}, Operator{Resize{.factor = {2, 2}}},
        Operator{Dropout{}}, Operator{Identity{}}})
    EXPECT_TRUE(parameters_of(op).empty()) << kind(op);
}

TEST(Parameters, AreCountedWithoutRunningStatistics) {
  Graph graph = stem();
  const Value x = graph.add("conv", conv3x3(8), {graph.input()});
  graph.add("bn", BatchNorm{}, {x});
  EXPECT_EQ(graph.parameter_count(), 3 * 8 * 9 + 8 + 2 * 8);
}

TEST(Parameters, HaveTheNamesThatTheBuilderGives) {
  Graph graph = stem();
  const Value x = graph.add("conv", conv3x3(8), {graph.input()}, {{.name = "conv1.weight"}});
  const auto& all = graph.node(x.id).parameters;
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].name, "conv1.weight");
  EXPECT_EQ(all[1].name, "stem.conv.bias");
}

TEST(Parameters, ThatNodesShareAreOne) {
  Graph graph = stem();
  const std::vector<ParameterChoice> shared{{.name = "twice.weight"}};
  const Value x = graph.add("first", conv3x3(3), {graph.input()}, shared);
  graph.add("second", conv3x3(3), {x}, shared);
  EXPECT_EQ(graph.parameter_count(), 3 * 3 * 9 + 2 * 3);
  std::vector<std::string> names;
  for (const Parameter& parameter : distinct_parameters(graph, {1, 2}))
    names.push_back(parameter.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"twice.weight", "stem.first.bias", "stem.second.bias"}));
}

TEST(Parameters, ThatAreFrozenAreNotTrained) {
  Graph graph = stem();
  const ParameterChoice frozen{.frozen = true};
  const Value x = graph.add("bn", BatchNorm{}, {graph.input()}, {frozen, {}, frozen});
  const auto& all = graph.node(x.id).parameters;
  EXPECT_EQ(all[0].name, "stem.bn.weight");
  EXPECT_EQ(all[0].kind, ParameterKind::frozen);
  EXPECT_EQ(all[1].kind, ParameterKind::trained);
  EXPECT_EQ(all[2].kind, ParameterKind::statistic);
  EXPECT_EQ(graph.parameter_count(), 3);
}

/// Returns what the user reads who makes this mistake.
std::string complaint(const std::function<void(Graph&)>& mistake) {
  Graph graph = stem();
  try {
    mistake(graph);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Complaint, AboutAMismatchNamesBothNodes) {
  const auto join = [](const Operator& op) {
    return complaint([&](Graph& graph) {
      const Value a = graph.add("op0.conv", conv3x3(8), {graph.input()});
      const Value b = graph.add("op1.pool", MaxPool{.kernel = {2, 2}}, {a});
      graph.add("join", op, {a, b});
    });
  };
  EXPECT_EQ(join(Add{}),
            "stem.op0.conv (8x16x20) and stem.op1.pool (8x8x10) cannot be added: "
            "8x16x20 and 8x8x10 differ");
  EXPECT_EQ(join(Concat{}),
            "stem.op0.conv (8x16x20) and stem.op1.pool (8x8x10) cannot be concatenated: "
            "only the channels of 8x16x20 and 8x8x10 may differ");
}

TEST(Complaint, AboutAnInputThatIsTooSmallNamesLayerInputAndKernel) {
  EXPECT_EQ(complaint([](Graph& graph) {
              graph.add("pool", AvgPool{.kernel = {18, 18}}, {graph.input()});
            }),
            "stem.pool (average pooling) cannot read input (3x16x20): its kernel 18x18 covers "
            "18x18 pixels, but the input has only 16x20 with padding");
}

TEST(Complaint, AboutAMissingInput) {
  EXPECT_EQ(complaint([](Graph& graph) { graph.add("relu", Relu{}, {}); }),
            "stem.relu (relu) has no input");
  for (const int id : {-1, 1, 7})
    EXPECT_EQ(complaint([id](Graph& graph) { graph.add("relu", Relu{}, {Value{id}}); }),
              "stem.relu (relu) reads a value that is not in its graph");
}

TEST(Complaint, AboutTheNumberOfInputs) {
  EXPECT_EQ(
      complaint([](Graph& graph) { graph.add("relu", Relu{}, {graph.input(), graph.input()}); }),
      "stem.relu (relu) cannot read input (3x16x20) and input (3x16x20): "
      "it has 1 input, not 2");
}

TEST(Complaint, AboutLinearOnASpatialValue) {
  EXPECT_EQ(complaint([](Graph& graph) { graph.add("linear", Linear{}, {graph.input()}); }),
            "stem.linear (linear) cannot read input (3x16x20): it needs an input without spatial "
            "axes; flatten it or pool it globally first");
}

TEST(Complaint, AboutNames) {
  EXPECT_EQ(complaint([](Graph& graph) {
              const Value x = graph.add("relu", Relu{}, {graph.input()});
              graph.add("relu", Relu{}, {x});
            }),
            "two nodes are named stem.relu");
  EXPECT_EQ(complaint([](Graph& graph) { graph.begin_cell("stem"); }), "two cells are named stem");
}

TEST(Complaint, AboutMoreOperationsThanCanBeCounted) {
  Graph graph({1 << 10, {1 << 18, 1 << 18}});
  graph.begin_cell("all");
  const auto add = [&](int number) {
    graph.add(std::to_string(number), Convolution{.out_channels = 1 << 10, .kernel = {1, 1}},
              {graph.input()});
  };
  int number = 0;
  try {
    for (; number < 1000; ++number) add(number);
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()).find("the graph up to all."), 0) << error.what();
  }
  EXPECT_EQ(number, 16);
  EXPECT_GT(flops_per_image(graph), 0);
}

TEST(Graph, MayHaveManyNodesAndCells) {
  Graph graph({1, {2, 2}});
  Value last = graph.input();
  for (int i = 0; i < 100'000; ++i) {
    graph.begin_cell("cell" + std::to_string(i));
    last = graph.add("relu", Relu{}, {last});
  }
  EXPECT_EQ(graph.cells().size(), 100'000);
}

TEST(Complaint, AboutParametersThatCannotBeShared) {
  const auto share = [](const Operator& op, const std::vector<ParameterChoice>& choices) {
    return complaint([&](Graph& graph) {
      const Value x = graph.add("first", conv3x3(3), {graph.input()}, {{.name = "w"}});
      const Value y = graph.add("norm", BatchNorm{}, {x}, {{}, {}, {.name = "mean"}});
      graph.add("second", op, {y}, choices);
    });
  };
  EXPECT_EQ(share(conv3x3(3), {{.name = "w"}}), "");
  EXPECT_EQ(share(conv3x3(4), {{.name = "w"}}),
            "stem.second cannot share parameter w: it is 3x3x3x3 there and 4x3x3x3 here");
  EXPECT_EQ(share(conv3x3(3), {{.name = "w", .frozen = true}}),
            "stem.second cannot share parameter w: one of them is frozen or a statistic");
  EXPECT_EQ(share(BatchNorm{}, {{}, {}, {.name = "mean"}}),
            "stem.second cannot share parameter mean: statistics belong to one node");
  EXPECT_EQ(share(Relu{}, {{.name = "w"}}), "stem.second has 0 parameters, and 1 are named");
}

TEST(Complaint, AboutParametersNamedLikeOtherTensorsOfACheckpoint) {
  const auto name = [](const std::string& weight) {
    return complaint(
        [&](Graph& graph) { graph.add("conv", conv3x3(3), {graph.input()}, {{.name = weight}}); });
  };
  EXPECT_EQ(name("enc/conv.weight"), "");
  EXPECT_EQ(name("momentum"), "");
  for (const char* other : {"momentum_buffer/w", "exp_avg/w", "exp_avg_sq/w", "carried/w",
                            "momentum/w", "variation/w", "w.num_batches_tracked"})
    EXPECT_EQ(name(other), fmt::format("stem.conv cannot have a parameter {}: checkpoints have "
                                       "other tensors of such names",
                                       other));
}

TEST(Complaint, AboutANodeWithoutCell) {
  Graph graph({3, {16, 20}});
  EXPECT_THROW(graph.add("relu", Relu{}, {graph.input()}), UsageError);
}

}  // namespace
}  // namespace mpi4dl
