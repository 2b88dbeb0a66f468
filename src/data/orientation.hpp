#pragma once

#include "graph/operators.hpp"

namespace mpi4dl {

/// Says how stored rows and columns are shown: swapped first, then reversed.
struct Orientation {
  bool swapped = false;
  bool rows_reversed = false;  ///< of the stored image
  bool cols_reversed = false;

  /// Reads the number that EXIF and TIFF have for it, 1 to 8.
  static Orientation from_exif(int number);
  /// Returns the size that a stored image of this size is shown at, and back.
  Extents shown(const Extents& stored) const;
};

}  // namespace mpi4dl
