#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "backend/backend.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

/// Says how much of a window operator's input lies outside the image, per spatial axis: padding,
/// seen only by tiles at the true border and applied again at every layer.
struct Padding {
  std::vector<int64_t> before, after;

  /// Returns whether it is the same on both sides of each axis, so that libtorch's operators can
  /// apply it themselves.
  bool symmetric() const { return before == after; }
  bool none() const;
};

/// Returns what `outputs` needs beyond the patch, which holds all of it that lies inside the image.
Padding padding_around(const Box& patch, const Box& outputs, const std::vector<Window>& windows);

/// Returns the input with `value` around it.
at::Tensor pad(const at::Tensor& input, const Padding& padding, double value);

/// Inverts pad on a gradient: returns the part without the frame.
at::Tensor unpad(const at::Tensor& gradient, const Padding& padding);

/// Writes zeros where a patch lies outside the image.
void clear_padding(const Backend& backend, const Patch& patch, const Box& image);

}  // namespace mpi4dl
