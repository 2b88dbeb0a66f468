// Weights that are computed from parameters: their shapes, their text, and what a graph knows of
// them.
#include "graph/formula.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graph/edit.hpp"
#include "graph/text.hpp"

namespace mpi4dl {
namespace {

using Function = FormulaFunction;

const char* const kNet =
    "input 3x16x16\n"
    "cell stem\n"
    "stem.conv = convolution(input) out_channels=8 kernel=3x3 with "
    "multiply(v:8x3x3x3, divide(g:8x1x1x1, norm(v:8x3x3x3, 1x2x3))), b\n"
    "stem.again = convolution(stem.conv) out_channels=8 kernel=3x3 bias=false with "
    "multiply(reshape(standardise(reshape(w:8x8x3x3, 1x8x72), 0x2, 1e-06), 8x8x3x3), "
    "multiply(frozen \"a gain\":8x1x1x1, 0.25))\n"
    "cell head\n"
    "head.pool = global_average_pooling(stem.again)\n"
    "head.fc = linear(head.pool) out_features=10\n"
    "output head.fc\n";

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Formula, HasTheShapeThatBroadcastingGives) {
  const Formula v = parameter_formula("v", {4, 3, 5}), g = parameter_formula("g", {4, 1, 1});
  const Formula norm = make_formula(Function::norm, {v}, {1, 2});
  EXPECT_EQ(norm.shape, (std::vector<int64_t>{4, 1, 1}));
  EXPECT_EQ(make_formula(Function::divide, {g, norm}).shape, (std::vector<int64_t>{4, 1, 1}));
  EXPECT_EQ(make_formula(Function::multiply, {g, v}).shape, v.shape);
  EXPECT_EQ(make_formula(Function::standardise, {v}, {0, 2}).shape, v.shape);
  EXPECT_EQ(make_formula(Function::add, {number_formula(2), v}).shape, v.shape);
  EXPECT_EQ(reshape_formula(v, {4, 15}).shape, (std::vector<int64_t>{4, 15}));
  EXPECT_EQ(parameter_formula("one", {}).shape, (std::vector<int64_t>{1}));
}

TEST(Formula, SeenAsItWasIsItself) {
  const Formula v = parameter_formula("v", {4, 6});
  EXPECT_EQ(reshape_formula(reshape_formula(v, {24}), {4, 6}), v);
}

TEST(Formula, SaysWhatDoesNotFit) {
  const Formula v = parameter_formula("v", {4, 3}), w = parameter_formula("w", {4, 2});
  EXPECT_EQ(complaint([&] { make_formula(Function::add, {v, w}); }),
            "weights of 4x3 and 4x2 cannot be combined");
  EXPECT_EQ(complaint([&] { make_formula(Function::mean, {v}, {1, 2}); }),
            "1x2 are no ascending axes of 4x3");
  EXPECT_EQ(complaint([&] { make_formula(Function::mean, {v}, {1, 0}); }),
            "1x0 are no ascending axes of 4x3");
  EXPECT_EQ(complaint([&] { reshape_formula(v, {5, 3}); }),
            "a weight of 4x3 cannot be seen as 5x3");
  Formula large = v;
  EXPECT_EQ(complaint([&] {
              for (int i = 0; i < 7; ++i) large = make_formula(Function::add, {large, large});
            }),
            "a weight is computed in more than 100 steps");
}

TEST(Formula, IsReadAsItIsWritten) {
  const Graph graph = parse_graph(kNet);
  EXPECT_EQ(to_text(graph), kNet);
}

TEST(Formula, GivesANodeItsParameters) {
  const Graph graph = parse_graph(kNet);
  const Node& conv = graph.node(1);
  ASSERT_EQ(conv.weights.size(), 2U);
  EXPECT_EQ(conv.weights[0].parameter.shape, (std::vector<int64_t>{8, 3, 3, 3}));
  ASSERT_EQ(conv.parameters.size(), 3U);  // v stands in it twice
  EXPECT_EQ(conv.parameters[0].name, "v");
  EXPECT_EQ(conv.parameters[0].init, Init::uniform_fan_in);
  EXPECT_EQ(conv.parameters[1].name, "g");
  EXPECT_EQ(conv.parameters[1].shape, (std::vector<int64_t>{8, 1, 1, 1}));
  EXPECT_EQ(conv.parameters[1].init, Init::ones);
  EXPECT_EQ(conv.parameters[2].name, "b");
  const Node& again = graph.node(2);
  EXPECT_TRUE(again.weights[0].parameter.trained());  // w is
  EXPECT_EQ(again.parameters[1].name, "a gain");
  EXPECT_EQ(again.parameters[1].kind, ParameterKind::frozen);
  EXPECT_EQ(graph.parameter_count(), 216 + 8 + 8 + 576 + 90);
}

TEST(Formula, SurvivesEdits) {
  EXPECT_EQ(to_text(with_image_size(parse_graph(kNet), {21, 9})),
            replaced(kNet, "3x16x16", "3x21x9"));
  EXPECT_EQ(to_text(with_classes(parse_graph(kNet), 3)),
            replaced(kNet, "out_features=10", "out_features=3"));
}

TEST(Formula, IsFrozenParameterByParameter) {
  const Graph some = with_frozen(parse_graph(kNet), {"v"});
  EXPECT_TRUE(some.node(1).weights[0].parameter.trained());  // g is
  EXPECT_EQ(some.node(1).parameters[0].kind, ParameterKind::frozen);
  EXPECT_EQ(to_text(parse_graph(to_text(some))), to_text(some));
  const Graph all = with_frozen(some, {"g"});
  EXPECT_FALSE(all.node(1).weights[0].parameter.trained());
}

TEST(Formula, OfTheClassesCannotHaveOtherOnes) {
  const std::string text =
      replaced(kNet, "out_features=10", "out_features=10 with standardise(c:10x8, 1, 0.001)");
  EXPECT_EQ(complaint([&] { with_classes(parse_graph(text), 3); }),
            "head.fc makes the classes, with a head.fc.weight that is computed from others and "
            "cannot have another number of them; replace the layer in Python");
}

TEST(Formula, MustFitItsOperator) {
  const auto wrong = [](const std::string& from, const std::string& to) {
    return complaint([&] { parse_graph(replaced(kNet, from, to)); });
  };
  EXPECT_EQ(wrong("norm(v:8x3x3x3,", "norm(v:8x3x1x3,"),
            "line 3 of the graph: stem.conv cannot share parameter v: it is 8x3x3x3 there and "
            "8x3x1x3 here");
  EXPECT_EQ(wrong("multiply(frozen \"a gain\":8x1x1x1, 0.25)", "exp(k:1x3x1x1)"),
            "line 4 of the graph: weights of 8x8x3x3 and 1x3x1x1 cannot be combined");
  EXPECT_EQ(wrong("with multiply(v:8x3x3x3,", "with multiply(v:9x3x3x3,").substr(0, 66),
            "line 3 of the graph: weights of 9x3x3x3 and 8x1x1x1 cannot be comb");
  EXPECT_EQ(wrong("norm(v", "norn(v"),
            "line 3 of the graph: there is no function norn that computes a weight");
  EXPECT_EQ(wrong("out_features=10", "out_features=10 with exp(1)"),
            "line 7 of the graph: head.fc has a weight of 10x8, and a formula for it that gives 1");
}

}  // namespace
}  // namespace mpi4dl
