#include "comm/node/node_reduce_scatter.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "comm/check.hpp"
#include "comm/idle_section.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

/// A piece is small enough that its sums stay in the processor's cache until they are complete, and
/// a multiple of a cache line in any type.
constexpr int64_t kPiece = 4096;
constexpr size_t kWidest = 8;

/// Knows where each rank of the group has its values of the elements of a tensor.
class SharedElements {
 public:
  /// This rank's values lie at `offset` in its shared memory.
  SharedElements(const at::Tensor& elements, int64_t offset, const NodeGroup& group)
      : group_(group),
        elements_(elements.numel()),
        width_(static_cast<int64_t>(elements.element_size())) {
    offsets_.resize(group.comm.size(), 0);
    offsets_[group.comm.rank()] = offset;
    all_reduce(offsets_);
  }

  void reduce_own_shard(MPI_Datatype type, MPI_Op operation) const {
    std::array<std::byte, kPiece * kWidest> sum;
    const auto [begin, end] = shard(group_.comm.rank());
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = std::min(kPiece, end - at);
      std::memcpy(sum.data(), address(0, at), count * width_);
      for (int rank = 1; rank < group_.comm.size(); ++rank)
        mpi(MPI_Reduce_local(address(rank, at), sum.data(), static_cast<int>(count), type,
                             operation));
      std::memcpy(address(group_.comm.rank(), at), sum.data(), count * width_);
    }
  }

  void copy_other_shards(std::byte* to) const {
    for (int rank = 0; rank < group_.comm.size(); ++rank) {
      const Interval theirs = shard(rank);
      if (rank == group_.comm.rank() || theirs.empty()) continue;
      std::memcpy(to + theirs.begin * width_, address(rank, theirs.begin),
                  theirs.length() * width_);
    }
  }

  /// An all-reduce ends when all ranks have begun it; MPI's barrier would take longer.
  void barrier() const {
    std::vector<int64_t> nothing(1);
    all_reduce(nothing);
  }

 private:
  Interval shard(int rank) const { return node_shard(elements_, rank, group_.comm.size()); }

  std::byte* address(int rank, int64_t element) const {
    return group_.node.memory().address(group_.comm.world_rank(rank),
                                        offsets_[rank] + element * width_);
  }

  void all_reduce(std::vector<int64_t>& values) const {
    group_.node.all_reduce(std::as_writable_bytes(std::span(values)),
                           static_cast<int>(values.size()), MPI_INT64_T, MPI_SUM, group_.comm,
                           group_.reason);
  }

  const NodeGroup& group_;
  int64_t elements_, width_;
  std::vector<int64_t> offsets_;  // of all ranks' values, each in its shared memory
};

/// Copies some of the elements to where other ranks can read them.
at::Tensor shared_copy(const at::Tensor& elements, const Interval& some, const NodeGroup& group) {
  const std::array<int64_t, 1> shape{some.length()};
  const at::Tensor copy =
      group.node.memory().empty(shape, elements.scalar_type(), c10::MemoryFormat::Contiguous);
  const auto width = static_cast<int64_t>(elements.element_size());
  std::memcpy(copy.data_ptr(), static_cast<std::byte*>(elements.data_ptr()) + some.begin * width,
              some.length() * width);
  return copy;
}

}  // namespace

Interval node_shard(int64_t elements, int rank, int ranks) {
  const Interval pieces = part((elements + kPiece - 1) / kPiece, rank, ranks);
  return {pieces.begin * kPiece, std::min(pieces.end * kPiece, elements)};
}

void node_reduce_scatter(const at::Tensor& elements, MPI_Datatype type, MPI_Op operation,
                         const NodeGroup& group) {
  const IdleSection section(group.comm.context(), &IdleTime::communication);
  const int64_t offset = *group.node.memory().offset_of(elements);
  SharedElements(elements, offset, group).reduce_own_shard(type, operation);
}

void node_all_gather(const at::Tensor& elements, const NodeGroup& group) {
  const IdleSection section(group.comm.context(), &IdleTime::communication);
  const SharedMemory& memory = group.node.memory();
  std::optional<int64_t> offset = memory.offset_of(elements);
  at::Tensor copy;
  const Interval own = node_shard(elements.numel(), group.comm.rank(), group.comm.size());
  if (!offset && !own.empty()) {
    copy = shared_copy(elements, own, group);
    // As if the elements before and behind the shard were there too: nobody reads them.
    offset = *memory.offset_of(copy) - own.begin * static_cast<int64_t>(elements.element_size());
  }
  const SharedElements all(elements, offset.value_or(0), group);
  all.copy_other_shards(static_cast<std::byte*>(elements.data_ptr()));
  all.barrier();  // nobody reads these elements any more
}

void node_sharded_all_reduce(const at::Tensor& elements, MPI_Datatype type, MPI_Op operation,
                             const NodeGroup& group) {
  const IdleSection section(group.comm.context(), &IdleTime::communication);
  at::Tensor readable = elements;
  if (!group.node.memory().offset_of(elements))
    readable = shared_copy(elements, {0, elements.numel()}, group);
  node_reduce_scatter(readable, type, operation, group);
  node_all_gather(readable, group);
  if (!readable.is_same(elements))
    std::memcpy(elements.data_ptr(), readable.data_ptr(), elements.nbytes());
}

}  // namespace mpi4dl
