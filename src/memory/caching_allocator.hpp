#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "memory/block_pool.hpp"
#include "memory/libtorch_version.hpp"

namespace mpi4dl {

/// Counts the bytes of large tensors.
struct AllocatorStatistics {
  int64_t live = 0;      ///< now
  int64_t peak = 0;      ///< at the worst moment
  int64_t resident = 0;  ///< what the process holds for them, freed blocks included
};

/// Gives memory to libtorch's CPU tensors, in huge pages, and keeps it for others when it is freed.
///
/// The system's allocator returns large blocks at once, and the next tensor faults in every page
/// again: that costs more than many operators compute. Small tensors still come from there.
class CachingAllocator : public TorchAllocator {
 public:
  /// Returns the only one. It never ends: a tensor may be freed after everything else.
  static CachingAllocator& instance();

  c10::DataPtr take(size_t bytes) const override;
  c10::DeleterFnPtr raw_deleter() const override;

  /// Freed blocks are given back to the system before the process holds more than this; at first
  /// all of the machine's memory.
  void set_limit(int64_t bytes);
  int64_t limit() const;
  /// Gives all freed blocks back to the system.
  void give_back();
  AllocatorStatistics statistics() const;

 private:
  CachingAllocator();
  static void free_anywhere(void* data);
  void* allocate_block(int64_t bytes);
  void release_block(void* data);
  bool owns(const void* data) const;
  void give_back_free_blocks();
  void use_again(const BlockPool::Block& block);
  int64_t resident() const { return pool_.end() - absent_bytes_; }

  std::byte* base_ = nullptr;  // null where the system has no address space for us
  int64_t capacity_ = 0;

  mutable std::mutex mutex_;
  BlockPool pool_;
  std::map<int64_t, int64_t> asked_;   // by offset: the bytes that were asked for
  std::map<int64_t, int64_t> absent_;  // by offset: pieces that the system has back
  int64_t absent_bytes_ = 0;
  int64_t live_ = 0, peak_ = 0, limit_ = 0;
};

enum class CpuAllocator { system, caching };

/// Sets where tensors take their memory from, from now on; those that exist keep theirs.
void use_allocator(CpuAllocator which);

}  // namespace mpi4dl
