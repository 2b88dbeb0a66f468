#include "comm/sharded_reduction.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {
namespace {

// The largest that every MPI has; reserve_tags() counts from below.
constexpr int kShardTag = 32766, kSumTag = 32767;

// The largest value of a message lies between this power of two and the next, which float16 has;
// and a power of two by which it is multiplied, or divided, is one of float32.
constexpr int kLargest = 14;
constexpr int kMostDoublings = 126;

int doublings(const at::Tensor& values) {
  const float largest = values.abs().max().item<float>();
  if (largest == 0 || !std::isfinite(largest)) return 0;
  return std::min(kLargest - std::ilogb(largest), kMostDoublings);
}

/// Encodes values in float16, behind how often they were doubled.
at::Tensor compressed(const at::Tensor& values) {
  const at::Tensor wide = values.to(at::kFloat);
  const int exponent = doublings(wide);
  at::Tensor message = at::empty({1 + values.numel()}, at::kHalf);
  message[0].fill_(exponent);
  message.narrow(0, 1, values.numel()).copy_(wide * std::ldexp(1.0F, exponent));
  return message;
}

/// Decodes such a message into float32.
at::Tensor expanded(const at::Tensor& message) {
  const int exponent = static_cast<int>(message[0].item<float>());
  return message.narrow(0, 1, message.numel() - 1).to(at::kFloat).mul_(std::ldexp(1.0F, -exponent));
}

}  // namespace

ShardedReduction::ShardedReduction(at::Tensor values, const Communicator& comm, Wire wire)
    : values_(std::move(values)), comm_(comm), wire_(wire) {
  ensure(values_.dim() == 1 && values_.is_contiguous(),
         "only contiguous values in one dimension are reduced in shards");
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (rank == comm_.rank()) continue;
    shards_.push_back(receive(rank, comm_.rank(), kShardTag));
    sums_.push_back(receive(rank, rank, kSumTag));
    sent_.push_back(comm_.send(encoded(shard(rank)), rank, kShardTag));
  }
}

at::Tensor ShardedReduction::shard(int rank) const {
  const Interval some = part(values_.numel(), rank, comm_.size());
  return values_.narrow(0, some.begin, some.length());
}

at::Tensor ShardedReduction::encoded(const at::Tensor& values) const {
  return wire_ == Wire::as_it_is || values.numel() == 0 ? values : compressed(values);
}

at::Tensor ShardedReduction::decoded(const at::Tensor& message) const {
  return wire_ == Wire::as_it_is || message.numel() == 0 ? message : expanded(message);
}

ShardedReduction::Message ShardedReduction::receive(int from, int shard, int tag) const {
  const at::Tensor values = this->shard(shard);
  const at::Tensor data = wire_ == Wire::as_it_is || values.numel() == 0
                              ? at::empty_like(values)
                              : at::empty({1 + values.numel()}, values.options().dtype(at::kHalf));
  return {from, data, comm_.receive(data, from, tag)};
}

bool ShardedReduction::advance() {
  if (sent_on_) return true;
  for (Message& message : shards_)
    if (!message.pending.ready()) return false;
  add_up();
  sent_on_ = true;
  return true;
}

void ShardedReduction::add_up() {
  at::Tensor own = shard(comm_.rank());
  const auto type = wire_ == Wire::half ? at::kFloat : own.scalar_type();
  at::Tensor sum = at::zeros({own.numel()}, own.options().dtype(type));
  auto message = shards_.begin();
  for (int rank = 0; rank < comm_.size(); ++rank)
    sum.add_(rank == comm_.rank() ? own.to(type) : decoded((message++)->data));
  const at::Tensor result = encoded(sum);
  for (int rank = 0; rank < comm_.size(); ++rank)
    if (rank != comm_.rank()) sent_.push_back(comm_.send(result, rank, kSumTag));
  own.copy_(decoded(result));
}

void ShardedReduction::send_on() {
  for (Message& message : shards_) message.pending.finish();
  advance();
}

void ShardedReduction::finish() {
  send_on();
  for (Pending& message : sent_) message.finish();  // before values that travel are overwritten
  for (Message& message : sums_) {
    message.pending.finish();
    shard(message.rank).copy_(decoded(message.data));
  }
}

}  // namespace mpi4dl
