#include "comm/bulletin.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "comm/check.hpp"
#include "comm/communicator.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {
namespace {

/// MPI keeps a group's bulletin with the group, and ends both at once.
int attribute_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    const auto end = [](MPI_Comm, int, void* bulletin, void*) {
      delete static_cast<Bulletin*>(bulletin);
      return MPI_SUCCESS;
    };
    mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &made, nullptr));
    return made;
  }();
  return key;
}

}  // namespace

Bulletin* Bulletin::of(const Communicator& comm) {
  void* found = nullptr;
  int exists = 0;
  mpi(MPI_Comm_get_attr(comm.handle(), attribute_key(), static_cast<void*>(&found), &exists));
  if (exists == 0) {
    found = new Bulletin(comm);  // NOLINT: MPI ends it with the group
    mpi(MPI_Comm_set_attr(comm.handle(), attribute_key(), found));
  }
  auto* bulletin = static_cast<Bulletin*>(found);
  return bulletin->usable() ? bulletin : nullptr;
}

Bulletin::Bulletin(const Communicator& comm) {
  if (comm.size() == 1 || !comm.on_one_node() || comm.context().stage_through_host) return;
  memory_ = comm.context().shared_memory;
  const std::array<int64_t, 1> bytes{kCacheLine + 2 * kCapacity};
  board_ = memory_->empty(bytes, c10::ScalarType::Byte, c10::MemoryFormat::Contiguous);
  posted(static_cast<std::byte*>(board_.data_ptr())).store(0, std::memory_order_relaxed);
  const auto offsets = all_gather(comm, *memory_->offset_of(board_));
  for (int rank = 0; rank < comm.size(); ++rank)
    boards_.push_back(memory_->address(comm.world_rank(rank), offsets[rank]));
}

std::atomic<int64_t>& Bulletin::posted(std::byte* board) {
  return *reinterpret_cast<std::atomic<int64_t>*>(board);
}

std::byte* Bulletin::place(std::byte* board) const {
  return board + kCacheLine + static_cast<size_t>(turn_ % 2) * kCapacity;
}

void Bulletin::all_reduce(std::span<std::byte> values, int count, MPI_Datatype type,
                          MPI_Op operation, const Communicator& comm,
                          const std::function<WaitReason()>& reason) {
  ensure(values.size() <= kCapacity, "{} bytes are too many for a bulletin", values.size());
  ++turn_;
  std::byte* own = boards_[comm.rank()];
  std::ranges::copy(values, place(own));
  posted(own).store(turn_, std::memory_order_release);
  for (int rank = 0; rank < comm.size(); ++rank)
    if (rank != comm.rank()) memory_->ring(comm.world_rank(rank));
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto there = [&] {
      return posted(boards_[rank]).load(std::memory_order_acquire) >= turn_;
    };
    comm.await(there, reason);
    if (rank == 0) {
      std::copy_n(place(boards_[rank]), values.size(), values.data());
    } else {
      mpi(MPI_Reduce_local(place(boards_[rank]), values.data(), count, type, operation));
    }
  }
}

}  // namespace mpi4dl
