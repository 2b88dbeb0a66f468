#include "comm/node/node_all_reduce.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "comm/check.hpp"
#include "comm/collectives.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

constexpr size_t kHeader = 2 * kCacheLine;

/// MPI keeps a group's NodeAllReduce with the group, and ends both at once.
int attribute_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    const auto end = [](MPI_Comm, int, void* ended, void*) {
      delete static_cast<NodeAllReduce*>(ended);
      return MPI_SUCCESS;
    };
    mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &made, nullptr));
    return made;
  }();
  return key;
}

}  // namespace

NodeAllReduce* NodeAllReduce::of(const Communicator& group) {
  void* found = nullptr;
  int exists = 0;
  mpi(MPI_Comm_get_attr(group.handle(), attribute_key(), static_cast<void*>(&found), &exists));
  if (exists == 0) {
    found = new NodeAllReduce(group);  // NOLINT: MPI ends it with the group
    mpi(MPI_Comm_set_attr(group.handle(), attribute_key(), found));
  }
  auto* made = static_cast<NodeAllReduce*>(found);
  return made->usable() ? made : nullptr;
}

NodeAllReduce::~NodeAllReduce() {
  if (!usable()) return;
  const int64_t readings = round_ * (std::ssize(buffers_) - 1);
  auto* own = static_cast<std::byte*>(buffer_.data_ptr());
  context_->kept_alive.push_back({std::make_shared<at::Tensor>(buffer_), [own, readings] {
                                    return read(own).load(std::memory_order_acquire) == readings;
                                  }});
}

NodeAllReduce::NodeAllReduce(const Communicator& group) {
  if (group.size() == 1 || !group.on_one_node() || group.context().stage_through_host) return;
  context_ = group.shared_context();
  memory_ = context_->shared_memory;
  const std::array<int64_t, 1> bytes{kHeader + 2 * kCapacity};
  buffer_ = memory_->empty(bytes, c10::ScalarType::Byte, c10::MemoryFormat::Contiguous);
  auto* own = static_cast<std::byte*>(buffer_.data_ptr());
  published(own).store(0, std::memory_order_relaxed);
  read(own).store(0, std::memory_order_relaxed);
  const auto offsets = all_gather(*memory_->offset_of(buffer_), group);
  for (int rank = 0; rank < group.size(); ++rank)
    buffers_.push_back(memory_->address(group.world_rank(rank), offsets[rank]));
}

std::atomic<int64_t>& NodeAllReduce::published(std::byte* buffer) {
  return *reinterpret_cast<std::atomic<int64_t>*>(buffer);
}

std::atomic<int64_t>& NodeAllReduce::read(std::byte* buffer) {
  return *reinterpret_cast<std::atomic<int64_t>*>(buffer + kCacheLine);
}

std::byte* NodeAllReduce::half(std::byte* buffer) const {
  return buffer + kHeader + static_cast<size_t>(round_ % 2) * kCapacity;
}

void NodeAllReduce::all_reduce(std::span<std::byte> values, int count, MPI_Datatype type,
                               MPI_Op operation, const Communicator& group,
                               const std::function<WaitReason()>& reason) {
  ensure(values.size() <= kCapacity,
         "{} bytes are too many for the shared-memory all-reduce of a node", values.size());
  ++round_;
  std::byte* own = buffers_[group.rank()];
  std::ranges::copy(values, half(own));
  published(own).store(round_, std::memory_order_release);
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank()) memory_->ring(group.world_rank(rank));
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto there = [&] {
      return published(buffers_[rank]).load(std::memory_order_acquire) >= round_;
    };
    group.await(there, reason);
    if (rank == 0) {
      std::copy_n(half(buffers_[rank]), values.size(), values.data());
    } else {
      mpi(MPI_Reduce_local(half(buffers_[rank]), values.data(), count, type, operation));
    }
    if (rank != group.rank()) read(buffers_[rank]).fetch_add(1, std::memory_order_release);
  }
}

}  // namespace mpi4dl
