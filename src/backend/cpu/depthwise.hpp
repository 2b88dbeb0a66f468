#pragma once

#include <ATen/core/Tensor.h>

#include "backend/cpu/convolution.hpp"
#include "backend/cpu/tap_products.hpp"

namespace mpi4dl {

// Convolutions in which each channel has a filter of its own. There is no matrix product in them: a
// vector of channels is multiplied, tap by tap, by as many weights, and the sums of a few pixels
// stay in registers. Tensors are as convolution.hpp says, with a weight of (channels, 1, H, W).

/// Writes y (forward), or dx of dy (backward-data): the product's runs say which.
void multiply_depthwise(const TapProduct& product, InstructionSet set);

void accumulate_depthwise_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                          const ImageWindows& windows, const at::Tensor& sums,
                                          InstructionSet set);

}  // namespace mpi4dl
