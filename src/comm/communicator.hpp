#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/context.hpp"
#include "comm/datatype.hpp"
#include "comm/pending.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

/// A group of ranks that exchange tensors. Copies share one MPI communicator, which is freed with
/// the last of them. Every wait is polite and watched (see Waiting).
class Communicator {
 public:
  /// Takes ownership of `comm`, unless it is MPI_COMM_WORLD.
  Communicator(MPI_Comm comm, std::shared_ptr<CommContext> context);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_ranks_->size()); }
  /// The rank in the whole job of this group's `rank`.
  int world_rank(int rank) const { return world_ranks_->at(rank); }
  /// True where its ranks can read each other's memory.
  bool on_one_node() const;
  MPI_Comm handle() const { return *comm_; }
  CommContext& context() const { return *context_; }
  std::shared_ptr<CommContext> shared_context() const { return context_; }

  /// Ranks with the same color form a group, ordered by key, then rank; none for a negative color.
  /// Collective.
  std::optional<Communicator> split(int color, int key = 0) const;
  /// The group of these ranks, in this order; none for the others. Collective over its members.
  std::optional<Communicator> subgroup(std::span<const int> ranks) const;

  /// Starts sending; the tensor must not change until the result is finished. Tensors travel in
  /// their order in memory, so both ends must agree on shape, type and memory format.
  Pending send(const at::Tensor& tensor, int to, int tag) const;
  /// Starts receiving into `tensor`, which must be dense.
  Pending receive(const at::Tensor& tensor, int from, int tag) const;
  /// The same for plain host memory, which `owner` keeps alive.
  Pending send(std::span<const std::byte> bytes, std::shared_ptr<void> owner, int to,
               int tag) const;
  Pending receive(std::span<std::byte> bytes, std::shared_ptr<void> owner, int from, int tag) const;

  /// Reduces in place over all ranks. Collective.
  void all_reduce(at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  /// The same, started only. The tensor must be dense, and on the CPU or reachable by MPI.
  Pending start_all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  /// The numbers of a tensor in shared memory that this rank works on where the ranks of a node
  /// share the work; none where they do not, or it is little. The first call is collective.
  std::optional<Interval> slice_of(const at::Tensor& numbers) const;
  /// Adds up this rank's slice over all ranks. The rest must not change until slices are gathered.
  /// Collective.
  void reduce_slice(const at::Tensor& numbers) const;
  /// Copies the slices of all other ranks into this tensor, in shared memory or not. Collective.
  void gather_slices(const at::Tensor& numbers) const;
  /// Merges statistics of disjoint samples: a float64 tensor whose last axis is (count, mean, sum
  /// of squared deviations from the mean). In place, the same on every rank. Collective.
  void all_reduce_moments(at::Tensor& moments) const;
  /// Copies root's tensor to every rank. Collective.
  void broadcast(at::Tensor& tensor, int root) const;
  /// Lets MPI work on messages in flight while this rank waits for something else.
  void progress() const;
  /// Waits until `done()`, which another rank of the node brings about and then rings; MPI works on
  /// messages in flight meanwhile.
  void await(const std::function<bool()>& done, const std::function<WaitReason()>& reason) const;
  /// Waits for all ranks. Collective.
  void barrier() const;
  /// The same number of bytes from each rank, in rank order, on every rank. Collective.
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) const;

  /// For the messages of small reductions alone.
  static constexpr int kReductionTag = 0;
  /// The next tags that no one else on this communicator uses, the same on all ranks provided
  /// that all ask in the same order.
  int reserve_tags(int count) const;

 private:
  bool reduce_few(const at::Tensor& numbers, int64_t count, MPI_Datatype type, MPI_Op operation,
                  const std::function<WaitReason()>& why) const;
  WaitReason reason(const char* operation, int64_t bytes) const;
  bool needs_staging(const at::Tensor& tensor) const;

  std::shared_ptr<MPI_Comm> comm_;
  std::shared_ptr<CommContext> context_;
  std::shared_ptr<int> next_tag_ = std::make_shared<int>(kReductionTag + 1);
  int rank_ = 0;
  std::shared_ptr<const std::vector<int>> world_ranks_;
};

/// all_gather of one value of plain data per rank.
template <typename T>
std::vector<T> all_gather(const Communicator& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = comm.all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<T> all(comm.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(all.data()));
  return all;
}

}  // namespace mpi4dl
