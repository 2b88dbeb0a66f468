#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "execute/parameters.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

/// Decides, once for a stage, how the ranks of its data-parallel group share the update of the
/// parameters that all of them hold. On one node each rank sums up and updates a shard, and has the
/// others' from them (ZeRO's first stage); between nodes, or where there is little to share, every
/// rank computes the whole update itself:
///
///     sharded:      gradients -- reduce --> sums of a shard -- step --> a shard -- gather --> all
///     not sharded:  gradients -- reduce --> all sums        -- step --> all
class ShardedUpdate {
 public:
  /// Decides by where the gradients lie. Collective over the group.
  ShardedUpdate(const Parameters& parameters, const Communicator& group);

  /// Returns the ranks that hold these parameters: tiles, replicas and directions alike.
  const Communicator& group() const { return group_; }
  /// Returns the elements that this rank sums up and updates: its shard, or all of them.
  const Interval& shard() const { return shard_; }
  /// Counts the ranks that have an element in their shard, and would count it in a sum over all
  /// ranks.
  int copies() const { return sharded_ ? 1 : group_.size(); }

  /// Sums gradients over the group; only this rank's shard is complete then. Collective.
  void reduce(at::Tensor gradients) const;
  /// Completes a tensor, of which each rank has its shard. Collective.
  void gather(const at::Tensor& elements) const;

 private:
  Communicator group_;
  bool sharded_ = false;
  Interval shard_;
};

}  // namespace mpi4dl
