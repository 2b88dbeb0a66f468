#pragma once

#include "graph/graph.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {

/// A random classifier: a chain of 2 to 6 cells, then a head. Cells are chains of windows,
/// residual blocks, parallel branches that are concatenated, or join results of two earlier cells.
/// Sizes shrink as they may: the caller finds out whether a grid fits.
Graph random_graph(Dice& dice, const Shape& image);

}  // namespace mpi4dl::testing
