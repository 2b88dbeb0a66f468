#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "backend/cpu/microkernels.hpp"
#include "backend/cpu/tap_runs.hpp"

// The loops around a batch-reduce GEMM microkernel (microkernels.hpp) that make a convolution of
// it, from the outside in: weights that are packed at a time (NC), rows of images on threads, lines
// of pixels that stay in L2, panels of NR channels, lines, and the microkernel along a line. Its
// list of taps is the same for all outputs of a run (tap_runs.hpp), so there is no im2col and no
// padding.

namespace mpi4dl {

/// Describes a convolution, forward or backward-data: every position of y is a sum over taps of x
/// times weights (out, in, H, W).
struct TapProduct {
  at::Tensor x, weight;
  bool backward_data = false;  ///< x are gradients of outputs, y those of inputs
  at::Tensor bias, residual;   ///< undefined: none
  at::Tensor y;
  std::vector<TapRun> rows, columns;  ///< of y
};

/// Writes y by a microkernel for the type of x, residual and y. Weight and bias have the type of
/// its operands, and x has a multiple of its k_unit as channels.
void multiply_taps(const TapProduct& product, const Microkernel& kernel);

}  // namespace mpi4dl
