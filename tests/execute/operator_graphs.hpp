#pragma once

#include <functional>
#include <string>

#include "graph/graph.hpp"
#include "support/random_operators.hpp"

// Graphs around one operator, which the tests call "op".
namespace mpi4dl::testing {

/// Draws a graph around one operator for an image of this shape.
using DrawGraph = std::function<Graph(Dice&, const Shape&)>;

/// Draws what the operator reads: something that another one made, which must then be exchanged, or
/// the image, which arrives with its margins.
Value draw_source(Dice& dice, Graph& graph);

/// Draws maps in the middle that may be smaller than the grid, as in a pyramid of pooled maps: the
/// first tile has those, and all tiles read what comes of them.
DrawGraph on_a_small_map(const DrawOperator& draw);

/// Draws a sum of two that read a pooled value, and perhaps a ReLU behind it: one of them is fused
/// with the sum.
DrawGraph pooled_with_sum(const DrawOperator& draw);

/// Draws a convolution of one pixel.
Convolution draw_pointwise(Dice& dice, const Shape& input);

/// Draws the operator alone.
DrawGraph one_operator(const DrawOperator& draw);

/// Draws values without pixels: one place holds them, and the other ranks have nothing to do.
DrawGraph after_pooling(const DrawOperator& draw);

/// Draws two to four inputs that differ in value and, if asked for, in channels.
DrawGraph several_inputs(const Operator& op, bool same_channels);

/// Adds the operator and something else, or twice the operator, and perhaps a ReLU behind it: one
/// of them is fused with the sum.
DrawGraph with_sum(const DrawOperator& draw);

/// Draws a pooled value that comes back to all tiles: it multiplies what it was pooled from, or
/// stands beside it.
DrawGraph pooled_and_back(bool multiplies);

/// Draws the same convolution twice, and one that is not trained.
DrawGraph shared_and_frozen();

/// Draws convolutions and a linear layer whose weights are computed from parameters: one of them
/// twice, and from parameters that another layer uses as they are.
DrawGraph computed_weights();

/// Draws any two operands, perhaps the same; a divisor is positive.
Graph two_operands(Dice& dice, const Shape& image);

/// Multiplies by a map with one channel.
Graph gated(Dice& dice, const Shape& image);

/// Draws the larger or the smaller of a number and its absolute value: often they are the same.
Graph equal_operands(Dice& dice, const Shape& image);

/// Draws a function that is defined for positive numbers alone, or grows fast.
Graph of_positive(Dice& dice, const Shape& image);

/// Draws a function with a kink where many of the inputs are.
Pointwise draw_kinked(Dice& dice, const Shape& input);

template <typename Op>
DrawOperator always(const Op& op = {}) {
  return [op](Dice&, const Shape&) { return op; };
}

}  // namespace mpi4dl::testing
