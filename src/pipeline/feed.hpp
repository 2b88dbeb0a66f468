#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "exchange/patch.hpp"
#include "layout/micro_batches.hpp"

namespace mpi4dl {

/// Gives the two ends of a pipeline what they need from outside.
struct Feed {
  /// Returns the pixels of a box of a micro-batch, whose batch axis counts its images.
  std::function<at::Tensor(const MicroBatch& images, const Box& box)> pixels;
  /// Takes logits, or another output: the box of the micro-batch's that this rank owns, perhaps
  /// nothing. Returns the gradient of the loss with respect to them; without a backward, nothing.
  std::function<at::Tensor(const MicroBatch& images, const Patch& logits)> loss_gradient;
};

}  // namespace mpi4dl
