#pragma once

#include <functional>

#include "graph/graph.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {

/// Draws an operator with random options for inputs of this shape; it need not fit.
using DrawOperator = std::function<Operator(Dice&, const Shape&)>;

Convolution draw_convolution(Dice& dice, const Shape& input);
TransposedConvolution draw_transposed_convolution(Dice& dice, const Shape& input);
MaxPool draw_max_pool(Dice& dice, const Shape& input);
AvgPool draw_avg_pool(Dice& dice, const Shape& input);
GroupNorm draw_group_norm(Dice& dice, const Shape& input);
Upsample draw_upsample(Dice& dice, const Shape& input);
Linear draw_linear(Dice& dice, const Shape& input);
Dropout draw_dropout(Dice& dice, const Shape& input);

/// Even and odd sizes; the tiles of this grid are 1 to about 6 pixels high and wide.
Shape draw_image(Dice& dice, const Grid& grid);
Shape draw_volume(Dice& dice, const Grid& grid);

}  // namespace mpi4dl::testing
