#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl {

struct Loss {
  double sum = 0;       ///< over this rank's images, each already divided by the effective batch
  at::Tensor gradient;  ///< with respect to the logits
};

/// Cross-entropy as a mean over the whole effective batch: each rank adds the share of its images.
Loss cross_entropy(const at::Tensor& logits, const at::Tensor& labels, int64_t effective_batch);

}  // namespace mpi4dl
