#include "comm/node/arena.hpp"

#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "base/rounding.hpp"

namespace mpi4dl {

MappedFile::MappedFile(int descriptor, int64_t bytes) : reserved_bytes_(bytes + kHugePage) {
  reserved_ =
      mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved_ == MAP_FAILED) {
    reserved_ = nullptr;
    return;
  }
  const auto address = reinterpret_cast<int64_t>(reserved_);
  std::byte* aligned =
      static_cast<std::byte*>(reserved_) + (round_up(address, kHugePage) - address);
  void* base = mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                    descriptor, 0);
  if (base != MAP_FAILED) base_ = static_cast<std::byte*>(base);
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(reserved_, other.reserved_);
  std::swap(reserved_bytes_, other.reserved_bytes_);
  std::swap(base_, other.base_);
  return *this;
}

MappedFile::~MappedFile() {
  if (reserved_ != nullptr) munmap(reserved_, reserved_bytes_);
}

Arena::Arena() : descriptor_(memfd_create("mpi4dl", MFD_CLOEXEC)) {
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  capacity_ = round_up(memory, kHugePage);
  if (descriptor_ >= 0 && ftruncate(descriptor_, capacity_) == 0)
    file_ = MappedFile(descriptor_, capacity_);
}

Arena::~Arena() {
  if (descriptor_ >= 0) close(descriptor_);
}

Arena::Block Arena::allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Block block = pool_.allocate(bytes);
  ensure(pool_.end() <= capacity_, "{} more bytes do not fit into {} bytes of shared memory", bytes,
         capacity_);
  ask_for_huge_pages();
  return block;
}

/// Shared memory gets huge pages only by asking for each, once it exists. Where the kernel cannot
/// (before Linux 6.1), ordinary pages do.
void Arena::ask_for_huge_pages() {
  if (pool_.end() <= huge_) return;
  const int64_t end = round_up(pool_.end(), kHugePage);
  for (int64_t page = huge_; page < end; page += kHugePage) base()[page] = std::byte{0};
  const bool given = madvise(base() + huge_, end - huge_, MADV_COLLAPSE) == 0;
  huge_ = given ? end : capacity_;
}

void Arena::release(const Block& block) {
  const std::lock_guard lock(mutex_);
  pool_.release(block.offset);
}

int64_t Arena::used() const {
  const std::lock_guard lock(mutex_);
  return pool_.end();
}

}  // namespace mpi4dl
