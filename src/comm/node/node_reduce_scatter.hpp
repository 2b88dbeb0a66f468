#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <functional>

#include "comm/communicator.hpp"
#include "comm/node/node_all_reduce.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

// Reductions of large tensors between the ranks of a node, each of which reads a shard of
// everybody's elements where they lie:
//
//     rank 0   a0 b0   -- reduce-scatter: a0 + a1 -->   a  b0   -- all-gather: copies b -->   a b
//     rank 1   a1 b1   -- reduce-scatter: b0 + b1 -->   a1 b    -- all-gather: copies a -->   a b
//
// MPI passes shards from rank to rank and adds on the way, with a system call for each.
// Everybody has the same result to the bit. Elements outside of the shared memory are copied there
// first. Each function is collective.

/// Names a group of ranks of one node, how they synchronise, and what their waits are for.
struct NodeGroup {
  const Communicator& comm;
  NodeAllReduce& node;
  const std::function<WaitReason()>& reason;
};

/// Returns which of so many elements a rank reduces.
Interval node_shard(int64_t elements, int rank, int ranks);

/// Reduces this rank's shard. The rest must stay as it is until shards are gathered.
void node_reduce_scatter(const at::Tensor& elements, MPI_Datatype type, MPI_Op operation,
                         const NodeGroup& group);

/// Copies everybody's shard from where that rank has it.
void node_all_gather(const at::Tensor& elements, const NodeGroup& group);

/// Reduces in place: a reduce-scatter, then an all-gather.
void node_sharded_all_reduce(const at::Tensor& elements, MPI_Datatype type, MPI_Op operation,
                             const NodeGroup& group);

}  // namespace mpi4dl
