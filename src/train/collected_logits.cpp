#include "train/collected_logits.hpp"

#include <ATen/ATen.h>

#include "comm/staging.hpp"

namespace mpi4dl {

void CollectedLogits::add(const MicroBatch& batch, const Patch& logits) {
  const Interval& rows = logits.box[0];
  if (rows.empty()) return;
  pieces_.push_back(logits.data);
  for (int64_t row = rows.begin; row < rows.end; ++row) images_.push_back(batch[row]);
}

void CollectedLogits::write(const at::Tensor& all, const CommContext& context) const {
  if (pieces_.empty()) return;
  const at::Tensor rows = in_host_memory(at::cat(pieces_).to(at::kDouble), context);
  for (size_t i = 0; i < images_.size(); ++i) all[images_[i]].copy_(rows[static_cast<int64_t>(i)]);
}

}  // namespace mpi4dl
