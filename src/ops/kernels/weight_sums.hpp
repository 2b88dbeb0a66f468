#pragma once

#include "ops/kernels/convolution.hpp"

namespace mpi4dl {

/// The gradient of a convolution's weight: sums over pixels of gradients times what their taps have
/// read. Exists for float and double.
template <typename T>
at::Tensor sum_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                               const ImageWindows& windows);

}  // namespace mpi4dl
