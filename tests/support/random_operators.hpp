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
BatchNorm draw_batch_norm(Dice& dice, const Shape& input);
GroupNorm draw_group_norm(Dice& dice, const Shape& input);
ChannelNorm draw_channel_norm(Dice& dice, const Shape& input);
ChannelScale draw_channel_scale(Dice& dice, const Shape& input);
/// Draws a function that a network has between its layers.
Pointwise draw_activation(Dice& dice, const Shape& input);
PRelu draw_prelu(Dice& dice, const Shape& input);
AdaptiveAvgPool draw_adaptive_avg_pool(Dice& dice, const Shape& input);
Resize draw_resize(Dice& dice, const Shape& input);
Linear draw_linear(Dice& dice, const Shape& input);
ChannelConvolution draw_channel_convolution(Dice& dice, const Shape& input);
Dropout draw_dropout(Dice& dice, const Shape& input);
Pad draw_pad(Dice& dice, const Shape& input);

/// Draws a weight of this shape that is computed from parameters, some of which may be frozen;
/// their names begin with this one, and tell it.
ParameterChoice draw_computed_weight(Dice& dice, const std::string& name,
                                     const std::vector<int64_t>& shape);
/// Draws that of an operator which reads such a value.
ParameterChoice draw_computed_weight(Dice& dice, const std::string& name, const Operator& op,
                                     const Shape& input);

/// Draws even and odd sizes; the tiles of this grid are 1 to about 6 pixels high and wide.
Shape draw_image(Dice& dice, const Grid& grid);
Shape draw_volume(Dice& dice, const Grid& grid);

}  // namespace mpi4dl::testing
