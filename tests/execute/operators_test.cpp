// Each operator alone on the tiles of a random grid, against the same operator of libtorch on the
// whole tensor: forward, input gradient, parameter gradients and running statistics.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "execute/operator_graphs.hpp"
#include "execute/trial.hpp"
#include "support/agreement.hpp"
#include "support/operator_table.hpp"

namespace mpi4dl::testing {
namespace {

struct Settings {
  c10::ScalarType type = c10::ScalarType::Double;
  double tolerance = 1e-11;
  bool ties = false;
  double volumes = 0.15;  ///< their share of the cases
};

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

/// Tests each operator alone.
class OneOperator : public ::testing::TestWithParam<OperatorRow> {};

TEST_P(OneOperator, EqualsLibtorch) {
  const OperatorRow& row = GetParam();
  expect_equal_to_libtorch(row.cases, one_operator(row.draw), {.ties = row.ties});
}

TEST_P(OneOperator, OnASmallMapEqualsLibtorch) {
  // libtorch pools no volumes that are shorter than the kernel, padding or not.
  expect_equal_to_libtorch(10, on_a_small_map(GetParam().draw), {.volumes = 0});
}

/// Tests those that any value can have behind a global pooling.
class OneLayer : public ::testing::TestWithParam<OperatorRow> {};

TEST_P(OneLayer, WithoutPixelsEqualsLibtorch) {
  expect_equal_to_libtorch(5, after_pooling(GetParam().draw));
}

std::vector<OperatorRow> layers() {
  std::vector<OperatorRow> rows = operator_table();
  std::erase_if(rows, [](const OperatorRow& row) { return !row.layer; });
  return rows;
}

std::string name_of(const ::testing::TestParamInfo<OperatorRow>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Operators, OneLayer, ::testing::ValuesIn(layers()), name_of);

std::vector<OperatorRow> rows_with_cases() {
  std::vector<OperatorRow> rows = operator_table();
  std::erase_if(rows, [](const OperatorRow& row) { return row.cases == 0; });
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Operators, OneOperator, ::testing::ValuesIn(rows_with_cases()), name_of);

TEST(Operators, AreAllInTheTable) {
  EXPECT_EQ(operator_table().size(), std::variant_size_v<Operator>);
  std::set<std::string_view> names;
  for (const OperatorRow& row : operator_table()) names.insert(row.name);
  EXPECT_EQ(names.size(), operator_table().size());
}

TEST(Operators, BatchNormWithOtherOptions) {
  expect_equal_to_libtorch(10, one_operator(always(BatchNorm{.eps = 1e-3, .momentum = 0.3})));
}

TEST(Operators, BatchNormThatIsFrozen) {
  expect_equal_to_libtorch(20, one_operator(always(BatchNorm{.eps = 1e-3, .frozen = true})));
}

TEST(Operators, BatchNormWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_batch_norm));
}

TEST(Operators, GroupNormWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_group_norm));
}

TEST(Operators, ChannelNormWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_channel_norm));
}

TEST(Operators, ChannelSoftmaxWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(always<ChannelSoftmax>()));
}

TEST(Operators, ChannelScaleWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_channel_scale));
}

TEST(Operators, PReluWithoutPixels) {
  expect_equal_to_libtorch(10, after_pooling(draw_prelu));
}

TEST(Operators, ActivationsWithoutPixels) {
  expect_equal_to_libtorch(30, after_pooling(draw_activation));
}

TEST(Operators, PointwiseOfPositiveNumbers) {
  expect_equal_to_libtorch(20, of_positive);
}

TEST(Operators, PointwiseWithKinks) {
  expect_equal_to_libtorch(40, one_operator(draw_kinked), {.ties = true});
}

TEST(Operators, PReluOfZeros) {
  expect_equal_to_libtorch(10, one_operator(draw_prelu), {.ties = true});
}

TEST(Operators, ConvolutionWithoutPixels) {
  expect_equal_to_libtorch(15, after_pooling(draw_pointwise));
}

TEST(Operators, SumsWithoutPixels) {
  expect_equal_to_libtorch(15, pooled_with_sum(draw_pointwise));
  expect_equal_to_libtorch(15, pooled_with_sum(always<BatchNorm>()));
}

TEST(Operators, Linear) {
  expect_equal_to_libtorch(15, after_pooling(draw_linear));
}

TEST(Operators, ChannelConvolution) {
  expect_equal_to_libtorch(15, after_pooling(draw_channel_convolution));
}

TEST(Operators, Add) {
  expect_equal_to_libtorch(10, several_inputs(Add{}, /*same_channels=*/true));
}

TEST(Operators, Concat) {
  expect_equal_to_libtorch(10, several_inputs(Concat{}, /*same_channels=*/false));
}

TEST(Operators, ElementwiseOfAnyOperands) {
  expect_equal_to_libtorch(150, two_operands);
}

TEST(Operators, ElementwiseOfEqualOperands) {
  expect_equal_to_libtorch(10, equal_operands, {.ties = true});
}

TEST(Operators, ConcatOfOneValueOnceOrSeveralTimes) {
  expect_equal_to_libtorch(10, [](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    graph.set_output(graph.add("op", Concat{}, std::vector<Value>(dice.pick(1, 3), x)));
    return graph;
  });
}

TEST(Operators, PaddingMayBeInfinite) {
  expect_equal_to_libtorch(10, [](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    Pad pad{.value = -std::numeric_limits<double>::infinity()};
    for (size_t axis = 0; axis < image.space.size(); ++axis) {
      pad.before.push_back(dice.pick(0, 1));
      pad.after.push_back(dice.pick(0, 1));
    }
    x = graph.add("pad", pad, {x});
    const Extents three(image.space.size(), 3);
    graph.set_output(graph.add("pool", MaxPool{.kernel = three}, {x}));
    return graph;
  });
}

/// PyTorch's versions do not agree on positions beyond the digits of float32.
double position_tolerance(int64_t length) {
  return 4 * static_cast<double>(length) * std::numeric_limits<float>::epsilon();
}

TEST(Operators, ResizeOfLongAxes) {
  struct Case {
    int64_t length, wanted;
    Interpolation mode;
    bool align_corners;
  };
  const auto alone = world().split(session().first() ? 0 : -1);
  for (const auto& [length, wanted, mode, align_corners] :
       {Case{32768, 98304, Interpolation::bilinear, false},
        Case{65537, 30011, Interpolation::bilinear, true},
        Case{50001, 98303, Interpolation::bicubic, false},
        Case{98304, 32768, Interpolation::nearest, false},
        Case{1777, 997, Interpolation::bilinear, false}})
    for (const auto type : {c10::ScalarType::Double, c10::ScalarType::Float}) {
      Trial trial{.graph = Graph({.channels = 1, .space = {1, length}}),
                  .grid = {1, 1, world().size()},
                  .type = type};
      trial.graph.begin_cell("subject");
      const Resize op{.space = {1, wanted}, .mode = mode, .align_corners = align_corners};
      const Value x = trial.graph.add("identity", Identity{}, {trial.graph.input()});
      trial.graph.set_output(trial.graph.add("op", op, {x}));
      const Outcome result = run_on_tiles(trial, world());
      if (alone) {
        SCOPED_TRACE(describe(trial));
        const bool twofold = type == c10::ScalarType::Double;
        expect_equal(result, run_whole(trial),
                     twofold && length < 2000 ? 1e-11 : position_tolerance(length));
        trial.grid = {};
        expect_equal(result, run_on_tiles(trial, *alone), twofold ? 1e-14 : 1e-6);
      }
    }
}

TEST(Operators, PooledValueMultipliesAllTiles) {
  expect_equal_to_libtorch(60, pooled_and_back(/*multiplies=*/true));
}

TEST(Operators, PooledValueStandsBesideAllTiles) {
  expect_equal_to_libtorch(40, pooled_and_back(/*multiplies=*/false));
}

TEST(Operators, SharedGradientsAddUpAndFrozenOnesDoNotExist) {
  expect_equal_to_libtorch(40, shared_and_frozen());
}

TEST(ComputedWeights, EqualLibtorch) {
  expect_equal_to_libtorch(60, computed_weights());
}

TEST(Operators, BatchNormAndSum) {
  expect_equal_to_libtorch(30, with_sum(draw_batch_norm));
}

TEST(Operators, ConvolutionAndSum) {
  expect_equal_to_libtorch(40, with_sum(draw_convolution));
}

/// Every layout drops the same elements: one rank alone is the reference.
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
              .grid = make_grid("square", world().size())};
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

TEST(Operators, DropoutDropsChannelsAndImagesAsAWhole) {
  for (const DropoutUnit per : {DropoutUnit::channel, DropoutUnit::image}) {
    Trial trial{.graph = Graph({.channels = 16, .space = {12, 15}}),
                .grid = make_grid("square", world().size()),
                .batch = 20};
    trial.graph.begin_cell("subject");
    trial.graph.set_output(
        trial.graph.add("op", Dropout{.probability = 0.25, .per = per}, {trial.graph.input()}));
    const at::Tensor output = run_on_tiles(trial, world()).output;
    const at::Tensor pixels = trial.pixels(Box::whole(trial.shape_of(0)));
    const at::Tensor kept = (output != 0).flatten(per == DropoutUnit::image ? 1 : 2);
    EXPECT_TRUE(kept.all(-1).equal(kept.any(-1)));
    EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 0.75, 0.25);
    EXPECT_FALSE(kept.all().item<bool>());
    EXPECT_TRUE(at::allclose(output, pixels * (output != 0) / 0.75, 1e-14, 1e-14));
  }
}

/// Tests types with fewer digits: the same laws, loosely.
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

TEST_P(Types, Pointwise) {
  expect_equal_to_libtorch(30, one_operator(draw_activation), GetParam());
}

TEST_P(Types, Elementwise) {
  expect_equal_to_libtorch(8, gated, GetParam());
}

TEST_P(Types, ChannelScale) {
  expect_equal_to_libtorch(8, one_operator(draw_channel_scale), GetParam());
}

TEST_P(Types, PRelu) {
  expect_equal_to_libtorch(8, one_operator(draw_prelu), GetParam());
}

/// A small epsilon would divide the rounding of nearly equal channels by its root.
TEST_P(Types, ChannelNorm) {
  expect_equal_to_libtorch(8, one_operator(always(ChannelNorm{.eps = 0.1})), GetParam());
}

TEST_P(Types, ChannelSoftmax) {
  expect_equal_to_libtorch(8, one_operator(always<ChannelSoftmax>()), GetParam());
}

TEST_P(Types, Resize) {
  expect_equal_to_libtorch(8, one_operator(draw_resize), GetParam());
}

TEST_P(Types, Pad) {
  expect_equal_to_libtorch(8, one_operator(draw_pad), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Float32, Types, ::testing::Values(Settings{c10::ScalarType::Float, 1e-5}));
// libtorch 1.13 pools no volumes in bfloat16. Gradients of parameters are sums in bfloat16 over
// tiles that partly cancel, hence the tolerance.
INSTANTIATE_TEST_SUITE_P(BFloat16, Types,
                         ::testing::Values(Settings{
                             .type = c10::ScalarType::BFloat16, .tolerance = 0.15, .volumes = 0}));

}  // namespace
}  // namespace mpi4dl::testing
