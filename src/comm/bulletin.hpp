#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/waiting.hpp"

namespace mpi4dl {

class Communicator;
class SharedMemory;

/// Small all-reductions between the ranks of a node, through memory that they share.
///
/// Each rank posts its numbers, raises its count, and reads everybody's as soon as they are there.
/// MPI passes partial sums on from rank to rank; where ranks outnumber cores, each pass waits for
/// the system to change processes. Here all wait once. Everybody adds in the order of ranks, so all
/// have the same result to the bit.
///
/// There are two places for the numbers, used in turn: who posts for the third time has seen all
/// others post for the second, and these have read what was posted first.
class Bulletin {
 public:
  static constexpr size_t kCapacity = size_t{32} << 10;

  /// The one of this group; null where its ranks do not share memory. The first call for a group is
  /// collective.
  static Bulletin* of(const Communicator& comm);

  /// What its ranks share.
  SharedMemory& memory() const { return *memory_; }

  /// Reduces at most kCapacity bytes in place. Collective.
  void all_reduce(std::span<std::byte> values, int count, MPI_Datatype type, MPI_Op operation,
                  const Communicator& comm, const std::function<WaitReason()>& reason);

 private:
  explicit Bulletin(const Communicator& comm);
  bool usable() const { return !boards_.empty(); }
  static std::atomic<int64_t>& posted(std::byte* board);
  std::byte* place(std::byte* board) const;

  std::shared_ptr<SharedMemory> memory_;
  at::Tensor board_;                // this rank's: its count, then the two places
  std::vector<std::byte*> boards_;  // of all ranks
  int64_t turn_ = 0;
};

}  // namespace mpi4dl
