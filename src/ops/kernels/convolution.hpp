#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "geometry/window.hpp"

namespace mpi4dl {

/// The windows of an image's two axes. Their padding is what lies before the input; whatever is
/// read beyond it, on either side, is zero.
using ImageWindows = std::array<Window, 2>;

/// True where the kernels below do this convolution: of images on the CPU with channels side by
/// side, in one group, for float32, float64 and bfloat16. Where the processor has a matrix unit it
/// multiplies bfloat16; without one that is computed in float32, and left to oneDNN on processors
/// that have other instructions for it.
bool has_convolution_kernel(const at::Tensor& input, const at::Tensor& weight, int64_t groups);

// Tensors are (N, C, H, W) and may be views with gaps between their rows. A weight is (out, in, H,
// W); `bias` may be undefined.

/// Writes y, whose size says how many outputs there are. `addend`, if defined, has that size too
/// and is added to them.
void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& addend, const at::Tensor& y);

/// Writes the gradient of the input.
void convolve_back(const at::Tensor& dy, const at::Tensor& weight, const ImageWindows& windows,
                   const at::Tensor& dx);

/// Adds the gradient of the weight to `sums`, which has the weight's shape and its channels side by
/// side; where the images are bfloat16, in float32.
void add_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                         const at::Tensor& sums);

}  // namespace mpi4dl
