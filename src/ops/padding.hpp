#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "exchange/patch.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

/// How much of a window operator's input lies outside the image, per spatial axis: padding, seen
/// only by tiles at the true border and applied again at every layer.
struct Padding {
  std::vector<int64_t> before, after;

  /// The same on both sides of each axis, so that libtorch's operators can apply it themselves.
  bool symmetric() const { return before == after; }
  bool none() const;
};

/// What `outputs` needs beyond the patch, which holds all of it that lies inside the image.
Padding padding_around(const Box& patch, const Box& outputs, const std::vector<Window>& windows);

/// The input with `value` around it.
at::Tensor pad(const at::Tensor& input, const Padding& padding, double value);

/// The inverse on a gradient: the part without the frame.
at::Tensor unpad(const at::Tensor& gradient, const Padding& padding);

/// Writes zeros where a patch lies outside the image.
void clear_padding(const Patch& patch, const Box& image);

}  // namespace mpi4dl
