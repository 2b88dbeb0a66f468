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
#include "comm/node/arena.hpp"
#include "comm/node/doorbell.hpp"

namespace mpi4dl {

class Communicator;

/// Gives out memory that the other ranks of a node can read, so that a halo moves in one copy, from
/// where a neighbour computed it to where it is needed, without packing.
///
/// Each rank reserves address space for one arena and every rank of the node maps it; pages cost
/// nothing until they are touched. Blocks that are freed are kept and given out again, so a
/// training step allocates without page faults.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  /// Returns null where the system does not let ranks map each other's memory. Collective over the
  /// node.
  static std::shared_ptr<SharedMemory> create(const Communicator& node);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Makes an uninitialised tensor in this rank's arena; the tensor keeps the arena alive.
  at::Tensor empty(std::span<const int64_t> shape, c10::ScalarType type, c10::MemoryFormat format);

  /// Allocates plain memory: a tensor takes longer to make than a small message to travel.
  std::shared_ptr<std::byte> allocate(int64_t bytes);

  /// Returns where the tensor, or what is at this address, lies in this rank's arena, if it does.
  std::optional<int64_t> offset_of(const at::Tensor& tensor) const;
  std::optional<int64_t> offset_of(const std::byte* data) const;

  /// Returns the address of a byte of another rank's arena; null where that rank is on another
  /// node.
  std::byte* address(int world_rank, int64_t offset) const;
  bool reaches(int world_rank) const { return address(world_rank, 0) != nullptr; }

  /// This rank sleeps by its doorbell while it waits, and rings those of others to wake them.
  Doorbell& doorbell() const { return header_->doorbell; }
  void ring(int world_rank) const;

  /// Returns true for the first rank of the node that asks, false for every other.
  bool first_to_ask() const;
  /// The word is not zero once a rank of the node has asked.
  const std::atomic<uint32_t>& asked() const { return peers_.front().header->asked; }

  /// Counts the bytes of the arena that were ever in use.
  int64_t reserved_bytes() const;

 private:
  /// Every arena has a header, which the other ranks of the node write into.
  struct alignas(kCacheLine) Header {
    Doorbell doorbell;
    std::atomic<uint32_t> asked{0};
  };
  struct Peer {
    int world_rank;
    MappedFile mapping;  // none for this rank itself
    std::byte* base;
    Header* header;
  };
  SharedMemory();
  const Peer* find(int world_rank) const;
  bool map_peers(const Communicator& node);

  Arena arena_;
  std::vector<Peer> peers_;
  Header* header_ = nullptr;  // in the arena
};

}  // namespace mpi4dl
