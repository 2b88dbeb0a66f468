#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory_units.hpp"
#include "comm/arena.hpp"
#include "comm/doorbell.hpp"

namespace mpi4dl {

class Communicator;

/// Memory that the other ranks of a node can read, so that a halo moves in one copy, from where a
/// neighbour computed it to where it is needed, without packing.
///
/// Each rank reserves address space for one arena and every rank of the node maps it; pages cost
/// nothing until they are touched. Blocks that are freed are kept and given out again, so a
/// training step allocates without page faults.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  /// Null where the system does not let ranks map each other's memory. Collective over the node.
  static std::shared_ptr<SharedMemory> create(const Communicator& node);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// An uninitialised tensor in this rank's arena; the tensor keeps the arena alive.
  at::Tensor empty(std::span<const int64_t> shape, c10::ScalarType type, c10::MemoryFormat format);

  /// The same without a tensor, which takes longer to make than a small message to travel.
  std::shared_ptr<std::byte> allocate(int64_t bytes);

  /// Where the tensor, or what is at this address, lies in this rank's arena, if it does.
  std::optional<int64_t> offset_of(const at::Tensor& tensor) const;
  std::optional<int64_t> offset_of(const std::byte* data) const;

  /// Address of a byte of another rank's arena; null where that rank is on another node.
  std::byte* address(int world_rank, int64_t offset) const;
  bool reaches(int world_rank) const { return address(world_rank, 0) != nullptr; }

  /// Where this rank sleeps while it waits, and how another rank of the node is woken.
  Doorbell& doorbell() const { return entrance_->doorbell; }
  void ring(int world_rank) const;

  /// True for the first rank of the node that asks, false for every other.
  bool first_to_ask() const;
  /// Not zero once a rank of the node has asked.
  const std::atomic<uint32_t>& asked() const { return peers_.front().entrance->asked; }

  /// Bytes of the arena that were ever in use.
  int64_t reserved_bytes() const;

 private:
  /// Of every arena, what the others of the node write into.
  struct alignas(kCacheLine) Entrance {
    Doorbell doorbell;
    std::atomic<uint32_t> asked{0};
  };
  struct Peer {
    int world_rank;
    MappedFile mapping;  // none for this rank itself
    std::byte* base;
    Entrance* entrance;
  };
  SharedMemory();
  const Peer* find(int world_rank) const;
  bool map_peers(const Communicator& node);

  Arena arena_;
  std::vector<Peer> peers_;
  Entrance* entrance_ = nullptr;  // in the arena
};

/// A tensor that other ranks of the node may read where that is possible, an ordinary one
/// elsewhere.
at::Tensor empty_for_exchange(const std::shared_ptr<SharedMemory>& memory,
                              std::span<const int64_t> shape, c10::ScalarType type,
                              c10::MemoryFormat format);

}  // namespace mpi4dl
