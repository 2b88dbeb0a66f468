#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "base/instruction_set.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

/// Holds the windows of an image's two axes. Their padding is what lies before the input; whatever
/// is read beyond it, on either side, is zero.
using ImageWindows = std::array<Window, 2>;

/// Returns true where the kernels below do this convolution: of channels-last images `x`, with
/// `other` (weights or gradients), to `out` channels, for float32, float64 and bfloat16, in one
/// group, in groups of many channels or in as many as there are channels. AMX multiplies bfloat16;
/// without it that is computed in float32, and left to oneDNN on processors with AVX512_BF16.
bool has_convolution_kernel(const at::Tensor& x, const at::Tensor& other, int64_t out,
                            int64_t groups, InstructionSet set = instruction_set());

// Tensors are (N, C, H, W), channels-last, and may be views with gaps between their rows. A weight
// is (out, in / groups, H, W); `bias` may be undefined. The kernels use instructions of `set` at
// most.

/// Computes y, whose size says how many outputs there are. `residual`, if defined, has that
/// size too and is added to them.
void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& residual, const at::Tensor& y,
              InstructionSet set = instruction_set());

/// Computes backward-data: writes the gradient of the input.
void convolve_backward_data(const at::Tensor& dy, const at::Tensor& weight,
                            const ImageWindows& windows, const at::Tensor& dx,
                            InstructionSet set = instruction_set());

/// Computes backward-weights: adds the gradient of the weight to `sums`, which has the weight's
/// shape and is channels-last; where the images are bfloat16, in float32.
void accumulate_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                const ImageWindows& windows, const at::Tensor& sums,
                                InstructionSet set = instruction_set());

}  // namespace mpi4dl
