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

/// Reduces small messages between the ranks of a node, through memory that they share.
///
/// Each rank publishes its elements, raises its count of rounds, and reads everybody's as soon as
/// they are there. MPI passes partial sums on from rank to rank; where ranks outnumber cores, each
/// pass waits for the system to change processes. Here all wait once. Everybody adds in the order
/// of ranks, so all have the same result to the bit.
///
/// Buffers are double: who publishes for the third time has seen all others publish for the second,
/// and these have read what was published first. When the group ends, others may still be reading:
/// each counts what it has read where it has read it, and memory stays until all of it was.
class NodeAllReduce {
 public:
  static constexpr size_t kCapacity = size_t{32} << 10;

  ~NodeAllReduce();
  NodeAllReduce(const NodeAllReduce&) = delete;
  NodeAllReduce& operator=(const NodeAllReduce&) = delete;

  /// Returns the one of this group; null where its ranks do not share memory. The first call for a
  /// group is collective.
  static NodeAllReduce* of(const Communicator& group);

  /// The memory is what its ranks share.
  SharedMemory& memory() const { return *memory_; }

  /// Reduces at most kCapacity bytes in place. Collective.
  void all_reduce(std::span<std::byte> values, int count, MPI_Datatype type, MPI_Op operation,
                  const Communicator& group, const std::function<WaitReason()>& reason);

 private:
  explicit NodeAllReduce(const Communicator& group);
  bool usable() const { return !buffers_.empty(); }
  static std::atomic<int64_t>& published(std::byte* buffer);
  static std::atomic<int64_t>& read(std::byte* buffer);
  std::byte* half(std::byte* buffer) const;

  std::shared_ptr<CommContext> context_;
  std::shared_ptr<SharedMemory> memory_;
  // This rank's: its count of rounds, how often others have read one, then the two halves.
  at::Tensor buffer_;
  std::vector<std::byte*> buffers_;  // of all ranks
  int64_t round_ = 0;
};

}  // namespace mpi4dl
