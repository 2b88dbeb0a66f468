#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// Names the ways in which an all-reduce can travel.
enum class AllReduceAlgorithm {
  none,             ///< one rank has nothing to reduce
  shared_memory,    ///< everybody reads everybody's elements in one round; see NodeAllReduce
  sharded_in_node,  ///< each rank of a node reduces a shard; see node_reduce_scatter.hpp
  direct,           ///< everybody sends to everybody; see direct_all_reduce.hpp
  mpi,              ///< MPI reduces in place
  staged_mpi,       ///< MPI reduces a dense copy in host memory
};

/// Says of an all-reduce what its algorithm depends on; it is the same on all ranks.
struct AllReduceCase {
  int64_t bytes = 0;
  int ranks = 1;
  bool shared_memory = false;  ///< the ranks can read each other's memory
  bool host = true;            ///< the tensor is dense and in host memory
  bool mpi_reads = true;       ///< it is dense, and MPI can use its memory
  bool shardable = true;       ///< its elements are scalars, of which any number can be cut off
};

/// Describes the all-reduce of a tensor. The first call for a group is collective.
AllReduceCase all_reduce_case(const at::Tensor& tensor, const Communicator& group);

/// Chooses the algorithm: the one place that does.
AllReduceAlgorithm choose_all_reduce(const AllReduceCase& message);

/// Says in a sentence which algorithm it is and why.
std::string explain(const AllReduceCase& message);

}  // namespace mpi4dl
