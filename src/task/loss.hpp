#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl {

struct Loss {
  at::Tensor sum;       ///< over these images, each already divided by the effective batch: float64
  at::Tensor gradient;  ///< with respect to the logits
};

/// Returns the cross-entropy as a mean over the whole effective batch: each rank adds the share of
/// its images. All of it stays where the logits are.
Loss cross_entropy(const at::Tensor& logits, const at::Tensor& labels, int64_t effective_batch);

/// Returns half the mean square of all elements of the effective batch's outputs: each rank adds
/// the share of its elements. `image_elements` counts those of one image's output.
Loss half_mean_square(const at::Tensor& output, int64_t effective_batch, int64_t image_elements);

}  // namespace mpi4dl
