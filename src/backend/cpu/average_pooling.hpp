#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/instruction_set.hpp"

namespace mpi4dl {

/// Holds the inputs that one output of an average pooling reads along an axis, and its part of the
/// divisor.
struct ReceptiveRange {
  int64_t begin, end;  ///< in the tensor that it reads: padding is left out
  double divisor;
};

/// Returns true where the kernels below can run: channels-last images in float32, float64 or
/// bfloat16 without gaps within rows.
bool has_average_pooling(const at::Tensor& x);

/// Writes each output's sum over its rows and columns, divided by both divisors: one pass over
/// memory, without padding. `y` is dense and channels-last.
void average_pool(const at::Tensor& x, const std::vector<ReceptiveRange>& rows,
                  const std::vector<ReceptiveRange>& cols, const at::Tensor& y,
                  InstructionSet set = instruction_set());

/// Writes the adjoint of that, all of `dx`, which is dense and channels-last.
void average_pool_backward(const at::Tensor& dy, const std::vector<ReceptiveRange>& rows,
                           const std::vector<ReceptiveRange>& cols, const at::Tensor& dx,
                           InstructionSet set = instruction_set());

}  // namespace mpi4dl
