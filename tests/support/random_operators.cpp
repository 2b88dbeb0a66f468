#include "support/random_operators.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kWidest = 5;        // kernel of an image
constexpr int64_t kWidestVolume = 3;  // of a volume

Extents draw_each(Dice& dice, const Shape& input, int64_t low, int64_t high) {
  Extents values;
  for (size_t axis = 0; axis < input.space.size(); ++axis) values.push_back(dice.pick(low, high));
  return values;
}

/// Draws even ones and flat ones too.
Extents draw_kernel(Dice& dice, const Shape& input) {
  if (input.space.size() == 3) return draw_each(dice, input, 1, kWidestVolume);
  if (dice.chance(0.15)) return dice.chance(0.5) ? Extents{1, 7} : Extents{7, 1};
  return draw_each(dice, input, 1, kWidest);
}

/// Pooling may pad by half of its kernel. A convolution may pad by more than its kernel: some of
/// its outputs then see padding only.
Extents draw_padding(Dice& dice, const Extents& kernel, bool only_half) {
  Extents padding;
  for (const int64_t width : kernel)
    padding.push_back(dice.pick(0, only_half ? width / 2 : width + 1));
  return padding;
}

int64_t draw_divisor(Dice& dice, int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) divisors.push_back(divisor);
  return dice.one_of(divisors);
}

/// Draws other padding at the end, as much of it as `draw_padding` does.
template <typename Op>
void draw_padding_end(Dice& dice, Op& op, bool only_half) {
  if (dice.chance(0.3)) op.padding_end = draw_padding(dice, op.kernel, only_half);
}

template <typename Op>
Op draw_convolution_options(Dice& dice, const Shape& input) {
  Op op{.kernel = draw_kernel(dice, input)};
  op.groups = dice.chance(0.5) ? 1 : draw_divisor(dice, input.channels);
  op.out_channels = op.groups * dice.pick(1, 3);
  op.stride = draw_each(dice, input, 1, 3);
  op.padding = draw_padding(dice, op.kernel, /*only_half=*/false);
  if (dice.chance(0.5)) op.dilation = draw_each(dice, input, 1, 3);
  op.bias = dice.chance(0.5);
  return op;
}

}  // namespace

Convolution draw_convolution(Dice& dice, const Shape& input) {
  auto op = draw_convolution_options<Convolution>(dice, input);
  draw_padding_end(dice, op, /*only_half=*/false);
  return op;
}

TransposedConvolution draw_transposed_convolution(Dice& dice, const Shape& input) {
  auto op = draw_convolution_options<TransposedConvolution>(dice, input);
  if (dice.chance(0.5)) op.output_padding = draw_each(dice, input, 0, 2);
  return op;
}

MaxPool draw_max_pool(Dice& dice, const Shape& input) {
  MaxPool op{.kernel = draw_kernel(dice, input)};
  if (dice.chance(0.7)) op.stride = draw_each(dice, input, 1, 3);
  op.padding = draw_padding(dice, op.kernel, /*only_half=*/true);
  draw_padding_end(dice, op, /*only_half=*/true);
  // A wider dilation could step over the whole image, and there is no largest of no pixels.
  if (dice.chance(0.5))
    for (const int64_t length : input.space)
      op.dilation.push_back(dice.pick(1, std::min<int64_t>(length, 3)));
  op.ceil_mode = dice.chance(0.5);
  return op;
}

AvgPool draw_avg_pool(Dice& dice, const Shape& input) {
  AvgPool op{.kernel = draw_kernel(dice, input)};
  if (dice.chance(0.7)) op.stride = draw_each(dice, input, 1, 3);
  op.padding = draw_padding(dice, op.kernel, /*only_half=*/true);
  draw_padding_end(dice, op, /*only_half=*/true);
  op.ceil_mode = dice.chance(0.5);
  op.count_include_pad = dice.chance(0.5);
  return op;
}

BatchNorm draw_batch_norm(Dice& dice, const Shape& /*input*/) {
  return {.affine = dice.chance(0.7)};
}

GroupNorm draw_group_norm(Dice& dice, const Shape& input) {
  return {.groups = dice.chance(0.2) ? 0 : draw_divisor(dice, input.channels),
          .affine = dice.chance(0.7)};
}

ChannelNorm draw_channel_norm(Dice& dice, const Shape& /*input*/) {
  return {.eps = dice.one_of({1e-6, 1e-5, 1e-3}), .affine = dice.chance(0.7)};
}

ChannelScale draw_channel_scale(Dice& dice, const Shape& /*input*/) {
  return {.bias = dice.chance(0.5), .shared = dice.chance(0.3)};
}

Pointwise draw_activation(Dice& dice, const Shape& /*input*/) {
  using enum PointwiseFunction;
  return dice.one_of<Pointwise>({{sigmoid},
                                 {silu},
                                 {tanh},
                                 {gelu},
                                 {gelu_tanh},
                                 {hardsigmoid},
                                 {hardswish},
                                 {hardtanh, 0, 6},
                                 {hardtanh, -0.4, 0.7},
                                 {leaky_relu, 0.1},
                                 {elu, 1},
                                 {elu, 0.3},
                                 {selu},
                                 {celu, 0.7},
                                 {softplus, 1, 20},
                                 {softplus, 2.5, 0.8},
                                 {mish},
                                 {log_sigmoid},
                                 {scale, -0.17},
                                 {scale, 2, -0.3}});
}

PRelu draw_prelu(Dice& dice, const Shape& input) {
  return {.num_parameters = dice.chance(0.5) ? 1 : input.channels};
}

AdaptiveAvgPool draw_adaptive_avg_pool(Dice& dice, const Shape& input) {
  return {draw_each(dice, input, 1, dice.chance(0.5) ? 4 : 20)};
}

/// Enlarges and shrinks; an axis may stay as it is. No factor but 1 keeps the size of 2 pixels or
/// more: libtorch's gradient of bicubic interpolation would take that for a copy.
Resize draw_resize(Dice& dice, const Shape& input) {
  Resize op{.mode = dice.one_of({Interpolation::nearest, Interpolation::nearest_exact,
                                 Interpolation::bilinear, Interpolation::bicubic})};
  const bool by_factor = dice.chance(0.5);
  for (const int64_t length : input.space) {
    if (by_factor) {
      op.factor.push_back(dice.one_of({0.4, 0.5, 1.0, 1.5, 2.0, 2.0, 3.0, 3.7}));
    } else {
      op.space.push_back(dice.chance(0.2) ? length : dice.pick(1, 2 * length + 3));
    }
  }
  const bool between = op.mode == Interpolation::bilinear || op.mode == Interpolation::bicubic;
  op.align_corners = between && dice.chance(0.4);
  return op;
}

/// Pads and cuts, each axis and end differently.
Pad draw_pad(Dice& dice, const Shape& input) {
  return {.before = draw_each(dice, input, -2, 3),
          .after = draw_each(dice, input, -2, 3),
          .mode = dice.one_of(
              {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}),
          .value = dice.one_of({0.0, -1.5})};
}

Linear draw_linear(Dice& dice, const Shape& /*input*/) {
  return {.out_features = dice.pick(1, 7), .bias = dice.chance(0.5)};
}

ChannelConvolution draw_channel_convolution(Dice& dice, const Shape& /*input*/) {
  return {.kernel = 1 + 2 * dice.pick(0, 3), .bias = dice.chance(0.5)};
}

Dropout draw_dropout(Dice& dice, const Shape& /*input*/) {
  return {.probability = static_cast<double>(dice.pick(0, 9)) / 10,
          .per = dice.one_of({DropoutUnit::element, DropoutUnit::channel, DropoutUnit::image})};
}

ParameterChoice draw_computed_weight(Dice& dice, const std::string& name,
                                     const std::vector<int64_t>& shape) {
  using enum FormulaFunction;
  const auto leaf = [&](const char* what, const std::vector<int64_t>& lengths) {
    const bool frozen = dice.chance(0.2);
    return parameter_formula((frozen ? "frozen" : "") + name + what, lengths, frozen);
  };
  const Formula v = leaf(".v", shape);
  std::vector<int64_t> each(shape.size(), 1), rest;
  each[0] = shape[0];
  for (size_t axis = 1; axis < shape.size(); ++axis) rest.push_back(static_cast<int64_t>(axis));
  const Formula gain = leaf(".gain", each);
  constexpr int64_t kFew = 4;  // elements, which have hardly a variance
  switch (v.shape.size() < 2 || positions(shape) < kFew * shape[0] ? 0 : dice.pick(0, 4)) {
    case 1:
      return {.formula = make_formula(
                  multiply, {v, make_formula(divide, {gain, make_formula(norm, {v}, rest)})})};
    case 2: {
      std::vector<int64_t> all{0};
      all.insert(all.end(), rest.begin(), rest.end());
      const Formula length = leaf(".length", std::vector<int64_t>(shape.size(), 1));
      return {.formula = make_formula(
                  multiply, {v, make_formula(divide, {length, make_formula(norm, {v}, all)})})};
    }
    case 3: {
      const Formula flat = reshape_formula(v, {1, shape[0], positions(shape) / shape[0]});
      const Formula standard = make_formula(standardise, {flat}, {0, 2}, 1e-6);
      const Formula scale = make_formula(multiply, {gain, number_formula(0.25)});
      return {
          .formula = reshape_formula(
              make_formula(multiply, {standard, reshape_formula(scale, {1, shape[0], 1})}), shape)};
    }
    case 4: {
      const Formula spread = make_formula(variance, {v}, rest, dice.chance(0.5) ? 1.0 : 0.0);
      const Formula safe = make_formula(add, {spread, number_formula(1e-6)});
      return {.formula =
                  make_formula(divide, {make_formula(subtract, {v, make_formula(mean, {v}, rest)}),
                                        make_formula(power, {safe}, {}, 0.5)})};
    }
    default: {
      const Formula small =
          make_formula(multiply, {make_formula(sum, {gain}, {0}), number_formula(0.1)});
      return {.formula = make_formula(multiply, {v, make_formula(exp, {small})})};
    }
  }
}

ParameterChoice draw_computed_weight(Dice& dice, const std::string& name, const Operator& op,
                                     const Shape& input) {
  return draw_computed_weight(dice, name, parameters(op, {input})[0].shape);
}

Shape draw_image(Dice& dice, const Grid& grid) {
  const int64_t height = dice.pick(std::max(3, grid.rows), 6 * grid.rows + 3);
  const int64_t width = dice.pick(std::max(3, grid.cols), 6 * grid.cols + 3);
  return {dice.one_of<int64_t>({1, 2, 3, 4, 6}), {height, width}};
}

Shape draw_volume(Dice& dice, const Grid& grid) {
  Shape shape = draw_image(dice, grid);
  shape.space.insert(shape.space.begin(), dice.pick(3, 6));
  return shape;
}

}  // namespace mpi4dl::testing
