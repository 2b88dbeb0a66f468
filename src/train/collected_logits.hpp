#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "backend/patch.hpp"
#include "comm/context.hpp"
#include "layout/micro_batches.hpp"

namespace mpi4dl {

/// Keeps the logits of micro-batches where they were computed, so that they are copied to the host
/// once.
class CollectedLogits {
 public:
  /// `logits` are a box of the micro-batch's.
  void add(const MicroBatch& batch, const Patch& logits);
  /// Writes them into their images' rows of a float64 tensor in host memory.
  void write(const at::Tensor& all, const CommContext& context) const;

 private:
  std::vector<at::Tensor> pieces_;
  std::vector<int64_t> images_;
};

}  // namespace mpi4dl
