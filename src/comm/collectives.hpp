#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/datatype.hpp"
#include "comm/pending.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

// Collectives are functions of what they work on, of a group, and of options. All ranks of the
// group call them, in the same order.

struct AllReduceOptions {
  Reduction reduction = Reduction::sum;
};

/// Reduces in place over all ranks; choose_all_reduce says how. Collective.
void all_reduce(at::Tensor& tensor, const Communicator& group,
                const AllReduceOptions& options = {});
/// Starts an all-reduce of MPI. The tensor must be dense, and on the CPU or reachable by MPI.
Pending start_all_reduce(const at::Tensor& tensor, const Communicator& group,
                         const AllReduceOptions& options = {});
/// Merges statistics of disjoint samples: a float64 tensor whose last axis is (count, mean, sum
/// of squared deviations from the mean). It works in place, and all ranks have the same result.
/// Collective.
void all_reduce_moments(at::Tensor& moments, const Communicator& group);

/// Returns the shard of a tensor in shared memory that this rank reduces where the ranks of a node
/// share the work; none where they do not, or it is little. The first call is collective.
std::optional<Interval> own_shard(const at::Tensor& elements, const Communicator& group);
/// Adds up this rank's shard over all ranks. The rest must not change until shards are gathered.
/// Collective.
void reduce_scatter(const at::Tensor& elements, const Communicator& group);
/// Copies the shards of all other ranks into this tensor, in shared memory or not. Collective.
void all_gather_shards(const at::Tensor& elements, const Communicator& group);

/// Copies root's tensor to every rank. Collective.
void broadcast(at::Tensor& tensor, const Communicator& group, int root);
/// Waits for all ranks. Collective.
void barrier(const Communicator& group);

/// Returns the same number of bytes from each rank, in rank order, on every rank. Collective.
std::vector<std::byte> all_gather_bytes(std::span<const std::byte> mine, const Communicator& group);

/// Returns one value of plain data from each rank, in rank order, on every rank. Collective.
template <typename T>
std::vector<T> all_gather(const T& mine, const Communicator& group) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = all_gather_bytes(std::as_bytes(std::span(&mine, 1)), group);
  std::vector<T> all(group.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(all.data()));
  return all;
}

}  // namespace mpi4dl
