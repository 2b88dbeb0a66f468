#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "geometry/box.hpp"

namespace mpi4dl {

/// Says where a rank stands in its stage's grid.
struct Place {
  int batch = 0;
  int row = 0;
  int col = 0;
  bool operator==(const Place&) const = default;
};

/// Arranges the ranks of a stage as a grid batch x rows x cols over a tensor, in row-major order.
///
///     1x2x2 over an image:   0 | 1        2x1x1 over a batch:  rank 0 has the first half
///                            --+--                             of the images, rank 1 the rest
///                            2 | 3
///
/// Ownership is balanced for any length and any number of parts. Volumes are cut along H and W,
/// never along D.
struct Grid {
  int batch = 1;
  int rows = 1;
  int cols = 1;

  int size() const { return batch * rows * cols; }
  Place place(int rank) const;
  int rank(const Place& place) const;
  /// Returns the box of a tensor of this shape that `rank` owns. A value without spatial extent (N,
  /// C) belongs to the first tile of each batch part.
  Box owned(std::span<const int64_t> shape, int rank) const;
  bool operator==(const Grid&) const = default;
};

/// Returns "2x2", "1x5", with the batch parts in front where there are several: "2x1x1".
std::string to_string(const Grid& grid);

/// Returns the grid for a slice method: `square` (the most square factorisation of `parts`, never
/// more rows than columns), `vertical` (column strips), `horizontal` (row strips), or explicit
/// "RxC".
Grid make_grid(const std::string& method, int parts);

}  // namespace mpi4dl
