#include "train/gradient_reduction.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "comm/staging.hpp"

namespace mpi4dl {

GradientReduction::GradientReduction(Parameters& parameters, const ShardedUpdate& update,
                                     const Options& options)
    : parameters_(parameters),
      update_(update),
      options_(options),
      travels_(!update.group().on_one_node()),
      missing_(parameters.cells()),
      bucket_end_(missing_.empty() ? 0 : missing_.back() + 1) {}

void GradientReduction::add(int cell) {
  ensure(!missing_.empty() && missing_.back() == cell, "cell {} came out of order", cell);
  missing_.pop_back();
  parameters_.complete_gradients_of_cell(cell);
  if (!travels_) return;
  send_sums_on();
  const at::Tensor sums = parameters_.gradient_memory(cell, bucket_end_);
  const bool full = static_cast<int64_t>(sums.nbytes()) >= options_.bucket_bytes;
  if (!full && !missing_.empty()) return;
  start(sums, options_.half ? ShardedReduction::Wire::half : ShardedReduction::Wire::as_it_is);
  bucket_end_ = cell;
}

void GradientReduction::start(const at::Tensor& sums, ShardedReduction::Wire wire) {
  if (sums.numel() == 0) return;
  const at::Tensor host = in_host_memory(sums, update_.group().context());
  buckets_.push_back({sums, ShardedReduction(host, update_.group(), wire)});
}

/// Buckets advance in an order that is the same on all ranks.
void GradientReduction::send_sums_on() {
  for (Bucket& bucket : buckets_)
    if (!bucket.reduction.advance()) return;
}

void GradientReduction::finish() {
  while (!missing_.empty()) add(missing_.back());
  if (travels_) {
    start(parameters_.statistics_memory(), ShardedReduction::Wire::as_it_is);
    for (Bucket& bucket : buckets_) bucket.reduction.send_on();
    for (Bucket& bucket : buckets_) {
      bucket.reduction.finish();
      bring_back(bucket.reduction.values(), bucket.sums);
    }
    buckets_.clear();
    return;
  }
  update_.reduce(parameters_.gradient_memory());
  at::Tensor statistics = parameters_.statistics_memory();
  if (statistics.numel() > 0) all_reduce(statistics, update_.group());
}

}  // namespace mpi4dl
