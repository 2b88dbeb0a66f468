#pragma once

#include <vector>

#include "data/scatter.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

/// Returns places for `count` patches of side x side pixels anywhere in an image of this height and
/// width; they may overlap.
std::vector<Corner> random_corners(const Extents& image, int64_t side, int64_t count, Draw& draw);

/// Returns places for patches that cover the image: side by side, row by row. Where they do not
/// come out even, the last row and the last column of patches lie at the edge and overlap with
/// those before.
std::vector<Corner> covering_corners(const Extents& image, int64_t side);

}  // namespace mpi4dl
