#include "train/gradient_reduction.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "base/error.hpp"

namespace mpi4dl {

GradientReduction::GradientReduction(Parameters& parameters, const Communicator& holders,
                                     const Options& options)
    : parameters_(parameters),
      holders_(holders),
      options_(options),
      travels_(options.half || !holders.on_one_node()),
      slice_(slice(parameters, holders, options)),
      missing_(parameters.cells()),
      bucket_end_(missing_.empty() ? 0 : missing_.back() + 1) {}

void GradientReduction::add(int cell) {
  ensure(!missing_.empty() && missing_.back() == cell, "cell {} came out of order", cell);
  missing_.pop_back();
  parameters_.begin_gradients_of_cell(cell);
  if (!travels_ && !missing_.empty()) return;
  const at::Tensor sums = parameters_.gradient_memory(cell, bucket_end_);
  const bool full = static_cast<int64_t>(sums.nbytes()) >= options_.bucket_bytes;
  if (!full && !missing_.empty()) return;
  start_bucket(sums, options_.half);
  bucket_end_ = cell;
}

void GradientReduction::start_bucket(const at::Tensor& sums, bool half) {
  if (holders_.size() == 1 || sums.numel() == 0) return;
  Bucket bucket{sums, half ? sums.to(at::kHalf) : sums, {}};
  if (travels_) bucket.pending = holders_.start_all_reduce(bucket.travel);
  buckets_.push_back(std::move(bucket));
}

void GradientReduction::finish() {
  while (!missing_.empty()) add(missing_.back());
  start_bucket(parameters_.statistics_memory(), /*half=*/false);
  for (Bucket& bucket : buckets_) {
    if (travels_) {
      bucket.pending.finish();
    } else if (slice_ && bucket.sums.data_ptr() == parameters_.gradient_memory().data_ptr()) {
      holders_.reduce_slice(bucket.sums);
    } else {
      holders_.all_reduce(bucket.sums);
    }
    if (!bucket.travel.is_same(bucket.sums)) bucket.sums.copy_(bucket.travel);
  }
  buckets_.clear();
}

std::optional<Interval> GradientReduction::slice(const Parameters& parameters,
                                                 const Communicator& holders,
                                                 const Options& options) {
  if (options.half) return std::nullopt;
  return holders.slice_of(parameters.gradient_memory());
}

Interval GradientReduction::complete() const {
  return slice_.value_or(Interval{0, parameters_.gradient_memory().numel()});
}

void reduce(Parameters& parameters, const Communicator& holders) {
  GradientReduction(parameters, holders, {}).finish();
  if (GradientReduction::slice(parameters, holders, {}))
    holders.gather_slices(parameters.gradient_memory());
}

}  // namespace mpi4dl
