#pragma once

#include <c10/core/ScalarType.h>

#include "backend/cpu/convolution.hpp"
#include "base/instruction_set.hpp"

namespace mpi4dl {

/// WeightGradientKernel is a way to compute backward-weights: sums over pixels of gradients times
/// what their taps have read.
struct WeightGradientKernel {
  InstructionSet set;      ///< that it needs
  c10::ScalarType stored;  ///< type of x and dy
  /// Adds to `sums`, by microkernels of at most this set.
  void (*accumulate)(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                     const at::Tensor& sums, InstructionSet set);
};

/// Returns true where sums have a row of filters for each channel of dy, over all channels of x:
/// what every kernel is promised.
inline bool fit(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                const at::Tensor& sums) {
  return x.size(0) == dy.size(0) && sums.size(0) == dy.size(1) && sums.size(1) == x.size(1) &&
         sums.size(2) == windows[0].kernel && sums.size(3) == windows[1].kernel;
}

/// Chooses the kernel for images of this type that needs the largest set, at most `set`.
const WeightGradientKernel& choose_weight_gradient_kernel(c10::ScalarType stored,
                                                          InstructionSet set);

/// Accumulates by AMX (amx_weight_gradient.cpp), for images of bfloat16.
void accumulate_weight_gradient_amx(const at::Tensor& x, const at::Tensor& dy,
                                    const ImageWindows& windows, const at::Tensor& sums,
                                    InstructionSet set);

}  // namespace mpi4dl
