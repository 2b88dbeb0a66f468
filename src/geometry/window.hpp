#pragma once

#include <cstdint>

#include "geometry/interval.hpp"

namespace mpi4dl {

/// Window is the window of a convolution or pooling layer along one axis.
///
///     output o reads inputs  o*stride - padding + {0, 1, ..., kernel-1} * dilation
struct Window {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  ///< before the first input
  int64_t dilation = 1;
  int64_t wider_end = 0;  ///< by how much the padding behind the last input is wider than that

  int64_t padding_end() const { return padding + wider_end; }

  /// Returns how many input rows one output row spans.
  int64_t span() const { return dilation * (kernel - 1) + 1; }

  /// Returns the number of outputs for an input of this length; none where the window does not fit.
  /// With `ceil_mode` the last window may hang over, but must begin inside the input or the
  /// padding before it.
  int64_t outputs(int64_t length, bool ceil_mode = false) const;

  /// Returns the inputs that these outputs read, not clipped: what lies outside the image is
  /// padding.
  Interval need(const Interval& outputs) const;

  bool operator==(const Window&) const = default;
};

}  // namespace mpi4dl
