#pragma once

#include "ops/kernels/convolution.hpp"

namespace mpi4dl {

/// Adds the gradient of a convolution's weight to `sums`: sums over pixels of gradients times what
/// their taps have read. Exists for float and double.
template <typename T>
void sum_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                         const at::Tensor& sums);

}  // namespace mpi4dl
