#include "train/gradient_reduction.hpp"

#include <ATen/Functions.h>

#include <utility>

#include "base/error.hpp"

namespace mpi4dl {

GradientReduction::GradientReduction(const Parameters& parameters, const Communicator& holders,
                                     const Options& options)
    : parameters_(parameters), holders_(holders), options_(options), missing_(parameters.cells()) {}

void GradientReduction::add(int cell) {
  ensure(!missing_.empty() && missing_.back() == cell, "cell {} came out of order", cell);
  missing_.pop_back();
  if (holders_.size() == 1) return;
  for (at::Tensor& sum : parameters_.gradient_sums(cell)) {
    gradient_bytes_ += static_cast<int64_t>(sum.nbytes());
    gradients_.push_back(std::move(sum));
  }
  for (at::Tensor& sum : parameters_.statistic_sums(cell)) statistics_.push_back(std::move(sum));
  if (gradient_bytes_ < options_.bucket_bytes) return;
  start_bucket(std::exchange(gradients_, {}), options_.half);
  gradient_bytes_ = 0;
}

void GradientReduction::start_bucket(std::vector<at::Tensor> sums, bool half) {
  if (sums.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& sum : sums) flat.push_back(sum.reshape({-1}));
  Bucket bucket{std::move(sums), at::cat(flat), {}};
  if (half) bucket.flat = bucket.flat.to(at::kHalf);
  bucket.pending = holders_.start_all_reduce(bucket.flat);
  buckets_.push_back(std::move(bucket));
}

void GradientReduction::finish() {
  while (!missing_.empty()) add(missing_.back());
  start_bucket(std::exchange(gradients_, {}), options_.half);
  start_bucket(std::exchange(statistics_, {}), /*half=*/false);
  gradient_bytes_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.pending.finish();
    int64_t offset = 0;
    for (const at::Tensor& sum : bucket.sums) {
      sum.copy_(bucket.flat.narrow(0, offset, sum.numel()).view(sum.sizes()));
      offset += sum.numel();
    }
  }
  buckets_.clear();
}

void reduce(const Parameters& parameters, const Communicator& holders) {
  GradientReduction(parameters, holders, {}).finish();
}

}  // namespace mpi4dl
