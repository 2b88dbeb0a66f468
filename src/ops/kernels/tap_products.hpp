#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ops/kernels/tap_runs.hpp"

namespace mpi4dl {

/// Every position of y is a sum over taps of x times weights: convolution, and also the way back.
struct TapProduct {
  at::Tensor x, weight;
  bool back = false;        ///< from outputs to inputs
  at::Tensor bias, addend;  ///< undefined: none
  at::Tensor y;
  std::vector<TapRun> rows, columns;  ///< of y
};

/// Writes y; `Stored` are the numbers of x, addend and y. Exists for float and double, for float
/// stored as bfloat16, and for bfloat16 where there is a matrix unit; x has an even number of
/// channels then.
template <typename T, typename Stored = T>
void multiply_taps(const TapProduct& product);

}  // namespace mpi4dl
