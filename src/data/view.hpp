#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "data/orientation.hpp"
#include "data/raster.hpp"

namespace mpi4dl {

/// Says how an image becomes one of another size.
enum class Fit {
  exact,     ///< it must have that size
  crop,      ///< its centre; it must be large enough
  pad,       ///< in the centre of white; it must be small enough
  crop_pad,  ///< whichever each axis needs
  resize     ///< filtered
};

/// Says where an image stands on a canvas: its size, and the place of its first pixel, which is
/// negative where rows or columns are cut off.
struct Placement {
  int64_t height = 0, width = 0;
  int64_t top = 0, left = 0;
};

/// Returns how an image of this size stands on the canvas. Throws Error where `fit` does not allow
/// it.
Placement place(const Extents& image, const Extents& canvas, Fit fit, const std::string& name);

/// Returns these rows and columns of a canvas on which an image is shown: bytes [rows, cols, 3],
/// white where the image does not reach. Whatever box is asked for, a pixel has the same value.
at::Tensor show(Raster& image, const Orientation& orientation, const Placement& placement,
                const Interval& rows, const Interval& cols);

/// Returns bytes [rows, cols, 3] as floats (x / 255 - 0.5) / 0.5, channels [begin, end) first.
at::Tensor normalised(const at::Tensor& bytes, const Interval& channels);

}  // namespace mpi4dl
