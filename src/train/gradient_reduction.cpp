#include "train/gradient_reduction.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace mpi4dl {

GradientReduction::GradientReduction(Parameters& parameters, const Communicator& holders,
                                     const Options& options)
    : parameters_(parameters),
      holders_(holders),
      options_(options),
      travels_(!holders.on_one_node()),
      slice_(slice(parameters, holders)),
      missing_(parameters.cells()),
      bucket_end_(missing_.empty() ? 0 : missing_.back() + 1) {}

void GradientReduction::add(int cell) {
  ensure(!missing_.empty() && missing_.back() == cell, "cell {} came out of order", cell);
  missing_.pop_back();
  parameters_.begin_gradients_of_cell(cell);
  if (!travels_) return;
  send_sums_on();
  const at::Tensor sums = parameters_.gradient_memory(cell, bucket_end_);
  const bool full = static_cast<int64_t>(sums.nbytes()) >= options_.bucket_bytes;
  if (!full && !missing_.empty()) return;
  start(sums, options_.half ? ShardedReduction::Wire::half : ShardedReduction::Wire::as_it_is);
  bucket_end_ = cell;
}

void GradientReduction::start(const at::Tensor& sums, ShardedReduction::Wire wire) {
  if (sums.numel() > 0) buckets_.emplace_back(sums, holders_, wire);
}

/// In the order of buckets, which is the same on all ranks.
void GradientReduction::send_sums_on() {
  for (ShardedReduction& bucket : buckets_)
    if (!bucket.advance()) return;
}

void GradientReduction::finish() {
  while (!missing_.empty()) add(missing_.back());
  if (travels_) {
    start(parameters_.statistics_memory(), ShardedReduction::Wire::as_it_is);
    for (ShardedReduction& bucket : buckets_) bucket.send_on();
    for (ShardedReduction& bucket : buckets_) bucket.finish();
    buckets_.clear();
    return;
  }
  const auto all_reduce = [this](at::Tensor sums) {
    if (sums.numel() > 0) holders_.all_reduce(sums);
  };
  if (slice_)
    holders_.reduce_slice(parameters_.gradient_memory());
  else
    all_reduce(parameters_.gradient_memory());
  all_reduce(parameters_.statistics_memory());
}

std::optional<Interval> GradientReduction::slice(const Parameters& parameters,
                                                 const Communicator& holders) {
  return holders.slice_of(parameters.gradient_memory());
}

Interval GradientReduction::complete() const {
  return slice_.value_or(Interval{0, parameters_.gradient_memory().numel()});
}

void reduce(Parameters& parameters, const Communicator& holders) {
  GradientReduction(parameters, holders, {}).finish();
  if (GradientReduction::slice(parameters, holders))
    holders.gather_slices(parameters.gradient_memory());
}

}  // namespace mpi4dl
