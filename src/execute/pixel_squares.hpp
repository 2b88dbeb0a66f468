#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl {

/// Makes a square of pixels of the channels of each pixel, in the order of torch's pixel_shuffle.
at::Tensor spread_channels(const at::Tensor& x, int64_t factor);

/// Inverts spread_channels, and is its adjoint.
at::Tensor gather_squares(const at::Tensor& x, int64_t factor);

}  // namespace mpi4dl
