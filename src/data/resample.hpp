#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "data/raster.hpp"

namespace mpi4dl {

/// Resizes along one axis, with a triangle filter as wide as two steps of the coarser grid, so that
/// a smaller image has no aliases. An output pixel depends on its place in the whole image alone,
/// and weights are integers, so that sums do not depend on their order: tiles fit to the bit.
class AxisFilter {
 public:
  static constexpr uint32_t kOne = 1U << 16;  ///< what the weights of an output sum to

  struct Taps {
    int64_t first = 0;
    std::vector<uint32_t> weights;
  };

  AxisFilter(int64_t from, int64_t to);
  /// Returns the input pixels that an output pixel is made of.
  Taps taps(int64_t output) const;
  /// Returns the input pixels that these output pixels are made of.
  Interval inputs(const Interval& outputs) const;

 private:
  Interval support(int64_t output) const;
  double centre(int64_t output) const;

  int64_t from_;
  double step_;     // of an output pixel, in input pixels
  double support_;  // half the width of the triangle, in input pixels
};

/// Returns these rows and columns of an image after its size has become height x width: bytes
/// [rows, cols, 3]. Holds one row of the source at a time.
at::Tensor resample(Raster& source, int64_t height, int64_t width, const Interval& rows,
                    const Interval& cols);

}  // namespace mpi4dl
