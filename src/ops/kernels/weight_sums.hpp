#pragma once

#include "ops/kernels/convolution.hpp"

namespace mpi4dl {

/// Adds the gradient of a convolution's weight to `sums`: sums over pixels of gradients times what
/// their taps have read. `Stored` are the numbers of x and dy. Exists for float and double, for
/// float stored as bfloat16, and for bfloat16 where there is a matrix unit.
template <typename T, typename Stored = T>
void sum_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                         const at::Tensor& sums);
template <>
void sum_weight_gradient<c10::BFloat16>(const at::Tensor& x, const at::Tensor& dy,
                                        const ImageWindows& windows, const at::Tensor& sums);

}  // namespace mpi4dl
