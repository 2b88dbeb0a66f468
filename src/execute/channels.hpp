#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl {

/// Returns a value for each image and channel (N, C), or for each image, as (N, C, 1, ...), which
/// broadcasts over pixels.
at::Tensor at_every_pixel(at::Tensor values, int64_t axes);

/// Returns a value for each channel (C) as (1, C, 1, ...), which broadcasts over images and pixels.
at::Tensor per_channel(const at::Tensor& values, int64_t axes);

/// Returns the adjoint of at_every_pixel: the sums over all pixels, (N, C).
at::Tensor sum_over_pixels(const at::Tensor& map);

}  // namespace mpi4dl
