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

/// Even ones and flat ones too.
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
  return draw_convolution_options<Convolution>(dice, input);
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
  op.ceil_mode = dice.chance(0.5);
  op.count_include_pad = dice.chance(0.5);
  return op;
}

GroupNorm draw_group_norm(Dice& dice, const Shape& input) {
  return {.groups = draw_divisor(dice, input.channels)};
}

Upsample draw_upsample(Dice& dice, const Shape& /*input*/) {
  return {.factor = dice.pick(1, 4),
          .mode = dice.one_of({Interpolation::nearest, Interpolation::bilinear})};
}

Linear draw_linear(Dice& dice, const Shape& /*input*/) {
  return {.out_features = dice.pick(1, 7), .bias = dice.chance(0.5)};
}

Dropout draw_dropout(Dice& dice, const Shape& /*input*/) {
  return {.probability = static_cast<double>(dice.pick(0, 9)) / 10};
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
