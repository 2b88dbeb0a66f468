#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "memory/block_pool.hpp"

namespace mpi4dl {

/// Maps a file in memory such that huge pages fit its start.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(int descriptor, int64_t bytes);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// The address is null where the system refused.
  std::byte* base() const { return base_; }

 private:
  void* reserved_ = nullptr;
  int64_t reserved_bytes_ = 0;
  std::byte* base_ = nullptr;
};

/// Manages a growing region of memory that other processes can map. Freed blocks are kept and given
/// out again. It grows by huge pages where the kernel has them: a column of a halo touches one page
/// a row, and small pages would cost more than the pixels.
class Arena {
 public:
  using Block = BlockPool::Block;

  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Block allocate(int64_t bytes);
  void release(const Block& block);

  int descriptor() const { return descriptor_; }
  int64_t capacity() const { return capacity_; }
  std::byte* base() const { return file_.base(); }
  /// Counts the bytes that were ever in use.
  int64_t used() const;

 private:
  void ask_for_huge_pages();

  int descriptor_ = -1;
  int64_t capacity_ = 0;
  MappedFile file_;

  mutable std::mutex mutex_;
  BlockPool pool_;
  int64_t huge_ = 0;  // how far huge pages were asked for
};

}  // namespace mpi4dl
