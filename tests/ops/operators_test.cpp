// Each operator alone on the tiles of a random grid, against the same operator of libtorch on the
// whole tensor: forward, input gradient, parameter gradients and running statistics.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/trial.hpp"
#include "support/agreement.hpp"
#include "support/random_operators.hpp"

namespace mpi4dl::testing {
namespace {

/// Draws a graph around one operator for an image of this shape.
using DrawGraph = std::function<Graph(Dice&, const Shape&)>;

struct Settings {
  c10::ScalarType type = c10::ScalarType::Double;
  double tolerance = 1e-11;
  bool ties = false;
  double volumes = 0.15;  ///< their share of the cases
};

/// What the operator reads was made by another one, and must then be exchanged; or it is the
/// image, which arrives with its margins.
Value draw_source(Dice& dice, Graph& graph) {
  graph.begin_cell("source");
  if (dice.chance(0.3)) return graph.input();
  return graph.add("identity", Identity{}, {graph.input()});
}

DrawGraph one_operator(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    graph.set_output(graph.add("op", draw(dice, image), {x}));
    return graph;
  };
}

/// Values without pixels: one place holds them, and the other ranks have nothing to do.
DrawGraph after_pooling(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    x = graph.add("pool", GlobalAvgPool{}, {x});
    graph.set_output(graph.add("op", draw(dice, graph.shape(x)), {x}));
    return graph;
  };
}

/// Two to four inputs that differ in value and, if asked for, in channels.
DrawGraph several_inputs(const Operator& op, bool same_channels) {
  return [op, same_channels](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    std::vector<Value> inputs{x};
    const Extents kernel(image.space.size(), 1);
    for (int64_t i = dice.pick(1, 3); i > 0; --i)
      inputs.push_back(
          graph.add(fmt::format("branch{}", i),
                    Convolution{.out_channels = same_channels ? image.channels : dice.pick(1, 4),
                                .kernel = kernel},
                    {x}));
    graph.set_output(graph.add("op", op, inputs));
    return graph;
  };
}

/// The operator and something else, or twice the operator, are added, and perhaps a ReLU follows:
/// one of them runs in the pass of the sum.
DrawGraph with_sum(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    const Operator op = draw(dice, image);
    std::vector<Value> parts{graph.add("op", op, {x})};
    const bool skip = graph.shape(parts[0]) == image && dice.chance(0.5);
    parts.push_back(skip ? x : graph.add("other", op, {x}));
    if (dice.chance(0.5)) std::swap(parts[0], parts[1]);
    const Value sum = graph.add("sum", Add{}, parts);
    graph.set_output(dice.chance(0.5) ? graph.add("relu", Relu{}, {sum}) : sum);
    return graph;
  };
}

template <typename Op>
DrawOperator always(const Op& op = {}) {
  return [op](Dice&, const Shape&) { return op; };
}

Trial draw_trial(uint64_t seed, const DrawGraph& draw, const Settings& settings) {
  Dice dice(combine_keys(seed, world().size()));
  const Grid grid = dice.grid(world().size());
  return draw_until_it_fits([&] {
    const bool volume = dice.chance(settings.volumes);
    Trial trial{.graph = draw(dice, volume ? draw_volume(dice, grid) : draw_image(dice, grid)),
                .grid = grid,
                .batch = dice.pick(std::max(2, grid.batch), grid.batch + 2),
                .halo = {dice.chance(0.5), static_cast<int>(dice.pick(1, 2))},
                .seed = seed,
                .type = settings.type,
                .training = dice.chance(0.8),
                .ties = settings.ties};
    const StagePlan fits(trial.graph, trial.grid, trial.batch, trial.halo);
    return trial;
  });
}

void expect_equal_to_libtorch(int count, const DrawGraph& draw, const Settings& settings = {}) {
  for (const uint64_t seed : seeds(count)) {
    const Trial trial = draw_trial(seed, draw, settings);
    session().doing(describe(trial));
    const Outcome result = run_on_tiles(trial, world());
    if (session().first()) {
      SCOPED_TRACE(describe(trial));
      expect_equal(result, run_whole(trial), settings.tolerance);
    }
    if (failed_anywhere()) return;
  }
}

TEST(Operators, Convolution) {
  expect_equal_to_libtorch(100, one_operator(draw_convolution));
}

TEST(Operators, TransposedConvolution) {
  expect_equal_to_libtorch(70, one_operator(draw_transposed_convolution));
}

TEST(Operators, BatchNorm) {
  expect_equal_to_libtorch(30, one_operator(always<BatchNorm>()));
  expect_equal_to_libtorch(10, one_operator(always(BatchNorm{.eps = 1e-3, .momentum = 0.3})));
}

TEST(Operators, BatchNormWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(always<BatchNorm>()));
}

TEST(Operators, GroupNorm) {
  expect_equal_to_libtorch(30, one_operator(draw_group_norm));
}

TEST(Operators, GroupNormWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_group_norm));
}

TEST(Operators, Relu) {
  expect_equal_to_libtorch(10, one_operator(always<Relu>()), {.ties = true});
}

TEST(Operators, MaxPoolResolvesTiesAsOneProcess) {
  expect_equal_to_libtorch(80, one_operator(draw_max_pool), {.ties = true});
}

TEST(Operators, AvgPool) {
  expect_equal_to_libtorch(70, one_operator(draw_avg_pool));
}

TEST(Operators, GlobalAvgPool) {
  expect_equal_to_libtorch(20, one_operator(always<GlobalAvgPool>()));
}

TEST(Operators, Upsample) {
  expect_equal_to_libtorch(50, one_operator(draw_upsample));
}

TEST(Operators, Add) {
  expect_equal_to_libtorch(10, several_inputs(Add{}, /*same_channels=*/true));
}

TEST(Operators, BatchNormAndSum) {
  expect_equal_to_libtorch(30, with_sum(always<BatchNorm>()));
}

TEST(Operators, ConvolutionAndSum) {
  expect_equal_to_libtorch(40, with_sum(draw_convolution));
}

TEST(Operators, Concat) {
  expect_equal_to_libtorch(10, several_inputs(Concat{}, /*same_channels=*/false));
}

TEST(Operators, Flatten) {
  expect_equal_to_libtorch(15, one_operator(always<Flatten>()));
}

TEST(Operators, Linear) {
  expect_equal_to_libtorch(15, after_pooling(draw_linear));
}

TEST(Operators, Identity) {
  expect_equal_to_libtorch(5, one_operator(always<Identity>()));
}

/// The same elements are dropped whatever the layout: one rank alone is the reference.
TEST(Operators, DropoutHasOneMask) {
  const auto alone = world().split(session().first() ? 0 : -1);
  for (const uint64_t seed : seeds(20)) {
    Trial trial = draw_trial(seed, one_operator(draw_dropout), {});
    session().doing(describe(trial));
    const Outcome result = run_on_tiles(trial, world());
    if (alone) {
      SCOPED_TRACE(describe(trial));
      trial.grid = {};
      expect_equal(result, run_on_tiles(trial, *alone), 0);
    }
    if (failed_anywhere()) return;
  }
}

TEST(Operators, DropoutKeepsTheMeanAndDropsItsShare) {
  constexpr double kProbability = 0.3;
  Trial trial{.graph = Graph({.channels = 4, .space = {64, 61}}),
              .grid = slice("square", world().size())};
  trial.graph.begin_cell("subject");
  trial.graph.set_output(
      trial.graph.add("op", Dropout{.probability = kProbability}, {trial.graph.input()}));
  const at::Tensor output = run_on_tiles(trial, world()).output;
  const at::Tensor pixels = trial.pixels(Box::whole(trial.shape_of(0)));
  const at::Tensor kept = output != 0;
  const double share = 1 - kept.to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(share, kProbability, 0.02);
  EXPECT_TRUE(at::allclose(output, pixels * kept / (1 - kProbability), 1e-14, 1e-14));
}

/// Types with fewer digits: the same laws, loosely.
class Types : public ::testing::TestWithParam<Settings> {};

TEST_P(Types, Convolution) {
  expect_equal_to_libtorch(8, one_operator(draw_convolution), GetParam());
}

TEST_P(Types, BatchNorm) {
  expect_equal_to_libtorch(8, one_operator(always<BatchNorm>()), GetParam());
}

TEST_P(Types, BatchNormAndSum) {
  expect_equal_to_libtorch(8, with_sum(always<BatchNorm>()), GetParam());
}

TEST_P(Types, MaxPool) {
  Settings settings = GetParam();
  settings.ties = true;
  expect_equal_to_libtorch(8, one_operator(draw_max_pool), settings);
}

TEST_P(Types, AvgPool) {
  expect_equal_to_libtorch(8, one_operator(draw_avg_pool), GetParam());
}

TEST_P(Types, GlobalAvgPool) {
  expect_equal_to_libtorch(8, one_operator(always<GlobalAvgPool>()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Float32, Types, ::testing::Values(Settings{c10::ScalarType::Float, 1e-5}));
// libtorch 1.13 pools no volumes in bfloat16. Gradients of parameters are sums in bfloat16 over
// tiles that partly cancel, hence the tolerance.
INSTANTIATE_TEST_SUITE_P(BFloat16, Types,
                         ::testing::Values(Settings{
                             .type = c10::ScalarType::BFloat16, .tolerance = 0.15, .volumes = 0}));

}  // namespace
}  // namespace mpi4dl::testing
