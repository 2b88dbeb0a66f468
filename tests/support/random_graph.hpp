#pragma once

#include "graph/graph.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {

/// Draws a classifier: a chain of 2 to 6 cells, then a head. Cells are chains of windows, residual
/// blocks, parallel branches that are concatenated, pyramids of pooled maps, hourglasses with
/// skips, or join results of two earlier cells. Sizes shrink as they may, and may become smaller
/// than a grid. With `dense` there is no head: the output is a map.
Graph random_graph(Dice& dice, const Shape& image, bool dense = false);

}  // namespace mpi4dl::testing
