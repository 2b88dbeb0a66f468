#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mpi4dl {

/// What one output of an average pooling reads along an axis, and its part of the divisor.
struct Reach {
  int64_t begin, end;  ///< in the tensor that it reads: padding is left out
  double divisor;
};

/// True where the kernels below can run: images in float32, float64 or bfloat16 on the CPU, with
/// channels side by side and no gaps within rows.
bool has_average_pooling(const at::Tensor& x);

/// Each output's sum over its rows and columns, divided by both divisors; one pass over memory,
/// without padding. `y` is dense, channels last.
void average_pool(const at::Tensor& x, const std::vector<Reach>& rows,
                  const std::vector<Reach>& cols, const at::Tensor& y);

/// The adjoint: writes all of `dx`, which is dense, channels last.
void average_pool_backward(const at::Tensor& dy, const std::vector<Reach>& rows,
                           const std::vector<Reach>& cols, const at::Tensor& dx);

}  // namespace mpi4dl
