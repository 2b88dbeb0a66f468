#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// Sums over all ranks, in place, while they compute: a reduce-scatter, then an all-gather. Each
/// rank adds up one shard, in the order of ranks, and sends it to everybody, so that all have the
/// same result to the bit and each sends no more than twice the values:
///
///     rank 0   a0 b0   --- b0 goes to rank 1 --->   a0 + a1 = a   --- a goes to rank 1 --->   a b
///     rank 1   a1 b1   --- a1 goes to rank 0 --->   b0 + b1 = b   --- b goes to rank 0 --->   a b
///
/// Messages may carry float16. They are added in float32, and a value is rounded twice, before and
/// after that, however many ranks there are. What travels together is multiplied by a power of two
/// that moves its largest value close to the largest float16: nothing overflows, and small values
/// keep their digits.
class ShardedReduction {
 public:
  enum class Wire { as_it_is, half };

  /// Starts the reduction. The values, contiguous, in one dimension and in host memory, must not
  /// change until it is finished. All ranks must start the reductions of a communicator in the same
  /// order.
  ShardedReduction(at::Tensor values, const Communicator& comm, Wire wire);

  /// Sends this rank's shard on if all of it has come; true once that is done. Never blocks.
  /// Reductions of a communicator must send on in the order in which they were started.
  bool advance();
  /// Waits for the shard and sends it on. Collective.
  void send_on();
  /// Waits until the sums are complete. Collective.
  void finish();
  const at::Tensor& values() const { return values_; }

 private:
  struct Message {
    int rank;
    at::Tensor data;
    Pending pending;
  };
  at::Tensor shard(int rank) const;
  at::Tensor encoded(const at::Tensor& values) const;
  at::Tensor decoded(const at::Tensor& message) const;
  Message receive(int from, int shard, int tag) const;
  void add_up();

  at::Tensor values_;
  Communicator comm_;
  Wire wire_;
  std::vector<Message> shards_;  // this rank's shard, as the others have it
  std::vector<Message> sums_;    // of the others' shards
  std::vector<Pending> sent_;
  bool sent_on_ = false;
};

}  // namespace mpi4dl
