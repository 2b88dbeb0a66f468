#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "support/simulated_device/history.hpp"

namespace mpi4dl::simulated {

/// Is a piece of a device's memory, which belongs to the stream that took it first.
struct Block {
  Footprint bytes;
  int device;
  Agent owner;
  std::vector<Agent> users;  // other streams, as record_stream said
  History history;
};

/// Holds the memory of all devices, as CUDA's caching allocator does: what is freed goes to its
/// stream, which may use it at once again, because a stream is in order with itself.
class Memory {
 public:
  static Memory& instance();

  /// Throws c10::OutOfMemoryError.
  Block& take(int device, Agent stream, int64_t bytes);
  void give_back(Block& block);
  /// Keeps memory from being taken again until the host knows what this stream has been given so
  /// far when it is freed.
  void record_user(const void* address, Agent stream);
  /// Returns the block in use that holds this address of a device.
  Block& at(const void* address);
  /// Returns the same, or null if it has been freed.
  Block* find(const void* address);

  int64_t live_bytes() const;
  int64_t peak_bytes() const;
  void forget_peak();

 private:
  /// Is freed, and used by streams until the host knows this clock.
  struct Used {
    Block* block;
    Clock until;
  };
  using Pool = std::multimap<int64_t, Block*>;  // by size

  Memory() = default;
  Block& make(int device, Agent stream, int64_t bytes);
  void reuse_what_has_been_used();
  void pool(Block& block);

  mutable std::mutex mutex_;
  std::list<Block> blocks_;
  std::map<Address, Block*> in_use_;
  std::map<Agent, Pool> free_;  // of each stream
  std::vector<Used> used_;
  std::map<int, int64_t> reserved_, live_of_;  // bytes of each device
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

/// Allocates on the current stream of the current device.
c10::Allocator& device_allocator();

}  // namespace mpi4dl::simulated
