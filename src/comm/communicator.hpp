#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/context.hpp"
#include "comm/pending.hpp"

namespace mpi4dl {

/// Connects a group of ranks that exchange tensors; collectives.hpp has what all of them do
/// together. Copies share one MPI communicator, which is freed with the last of them. Every wait is
/// polite and watched (see Waiting).
class Communicator {
 public:
  /// Takes ownership of `comm`, unless it is MPI_COMM_WORLD.
  Communicator(MPI_Comm comm, std::shared_ptr<CommContext> context);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_ranks_->size()); }
  /// Translates a rank of this group into a rank of the whole job.
  int world_rank(int rank) const { return world_ranks_->at(rank); }
  /// Returns true where its ranks can read each other's memory.
  bool on_one_node() const;
  MPI_Comm handle() const { return *comm_; }
  CommContext& context() const { return *context_; }
  std::shared_ptr<CommContext> shared_context() const { return context_; }

  /// Forms a group of ranks with the same color, ordered by key, then rank; none for a negative
  /// color. Collective.
  std::optional<Communicator> split(int color, int key = 0) const;
  /// Forms a group of these ranks, in this order; none for the others. Collective over its members.
  std::optional<Communicator> subgroup(std::span<const int> ranks) const;

  /// Returns this group for tensors of another backend.
  Communicator with_backend(std::shared_ptr<const Backend> backend) const;

  /// Starts sending; the tensor must not change until the result is finished. Tensors travel in
  /// their order in memory, so both ends must agree on shape, type and memory format.
  Pending send(const at::Tensor& tensor, int to, int tag) const;
  /// Starts receiving into `tensor`, which must be dense.
  Pending receive(const at::Tensor& tensor, int from, int tag) const;
  /// Starts a message of plain host memory, which `owner` keeps alive.
  Pending send(std::span<const std::byte> bytes, std::shared_ptr<void> owner, int to,
               int tag) const;
  Pending receive(std::span<std::byte> bytes, std::shared_ptr<void> owner, int from, int tag) const;

  /// Lets MPI work on messages in flight while this rank waits for something else.
  void progress() const;
  /// Waits until `done()`, which another rank of the node brings about and then rings; MPI works on
  /// messages in flight meanwhile.
  void await(const std::function<bool()>& done, const std::function<WaitReason()>& reason) const;
  /// Describes a wait for all ranks of this group.
  WaitReason wait_reason(const char* operation, int64_t bytes) const;
  /// Returns true where the tensor's memory is not given to MPI, so that a copy in host memory
  /// travels. A device's memory never is here: nobody has waited for the device.
  bool needs_staging(const at::Tensor& tensor) const;

  /// This tag is for the messages of direct_all_reduce alone.
  static constexpr int kReductionTag = 0;
  /// Returns the first of so many tags that no one else on this communicator uses, the same on all
  /// ranks provided that all ask in the same order.
  int reserve_tags(int count) const;

 private:
  std::shared_ptr<MPI_Comm> comm_;
  std::shared_ptr<CommContext> context_;
  std::shared_ptr<int> next_tag_ = std::make_shared<int>(kReductionTag + 1);
  int rank_ = 0;
  std::shared_ptr<const std::vector<int>> world_ranks_;
};

}  // namespace mpi4dl
