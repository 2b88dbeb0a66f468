#include "memory/caching_allocator.hpp"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/memory_units.hpp"
#include "base/rounding.hpp"
#include "memory/memory_meter.hpp"

namespace mpi4dl {
namespace {

/// The system's allocator keeps smaller blocks by itself.
constexpr int64_t kSmallest = int64_t{64} << 10;
/// Address space costs nothing; pieces between blocks should not use it up.
constexpr int64_t kAddressesPerByte = 4;

int64_t physical_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

/// Pages appear when they are touched: huge ones, because the whole range asks for them.
std::byte* reserve(int64_t bytes) {
  void* addresses = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<int64_t>(addresses);
  const int64_t aligned = round_up(address, kHugePage);
  auto* base = static_cast<std::byte*>(addresses) + (aligned - address);
  madvise(base, bytes, MADV_HUGEPAGE);
  return base;
}

}  // namespace

CachingAllocator& CachingAllocator::instance() {
  static auto* the_one = new CachingAllocator;  // NOLINT: tensors may outlive main
  return *the_one;
}

CachingAllocator::CachingAllocator()
    : capacity_(kAddressesPerByte * physical_memory()), limit_(physical_memory()) {
  base_ = reserve(capacity_);
}

c10::DataPtr CachingAllocator::take(size_t bytes) const {
  // Which memory is in use is no part of what libtorch 1.13 calls the allocator's state.
  auto& self = const_cast<CachingAllocator&>(*this);
  void* data = nullptr;
  if (static_cast<int64_t>(bytes) >= kSmallest)
    data = self.allocate_block(static_cast<int64_t>(bytes));
  if (data == nullptr) return c10::GetDefaultCPUAllocator()->allocate(bytes);
  report_memory(data, static_cast<int64_t>(bytes));
  return {data, data, &free_anywhere, c10::Device(c10::DeviceType::CPU)};
}

c10::DeleterFnPtr CachingAllocator::raw_deleter() const {
  return &free_anywhere;
}

void CachingAllocator::free_anywhere(void* data) {
  CachingAllocator& self = instance();
  if (self.owns(data)) {
    self.release_block(data);
  } else {
    c10::GetDefaultCPUAllocator()->raw_deleter()(data);
  }
}

bool CachingAllocator::owns(const void* data) const {
  const auto* address = static_cast<const std::byte*>(data);
  return base_ != nullptr && address >= base_ && address < base_ + capacity_;
}

void* CachingAllocator::allocate_block(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (base_ == nullptr || pool_.end() + 2 * bytes > capacity_) return nullptr;
  if (resident() + bytes > limit_ && !pool_.holds(bytes)) give_back_free_blocks();
  const BlockPool::Block block = pool_.allocate(bytes);
  use_again(block);
  asked_[block.offset] = bytes;
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return base_ + block.offset;
}

void CachingAllocator::release_block(void* data) {
  int64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const int64_t offset = static_cast<std::byte*>(data) - base_;
    const auto asked = asked_.find(offset);
    bytes = asked->second;
    asked_.erase(asked);
    live_ -= bytes;
    pool_.release(offset);
  }
  report_memory(data, -bytes);
}

void CachingAllocator::give_back_free_blocks() {
  absent_.clear();
  absent_bytes_ = 0;
  for (const BlockPool::Block& block : pool_.free_blocks()) {
    if (madvise(base_ + block.offset, block.bytes, MADV_DONTNEED) != 0) continue;
    absent_[block.offset] = block.bytes;
    absent_bytes_ += block.bytes;
  }
}

/// Pages of a block in use are no longer absent.
void CachingAllocator::use_again(const BlockPool::Block& block) {
  auto piece = absent_.upper_bound(block.offset);
  if (piece != absent_.begin()) --piece;
  const int64_t end = block.offset + block.bytes;
  while (piece != absent_.end() && piece->first < end) {
    const auto [begin, bytes] = *piece;
    if (begin + bytes <= block.offset) {
      ++piece;
      continue;
    }
    piece = absent_.erase(piece);
    absent_bytes_ -= bytes;
    const auto keep = [&](int64_t from, int64_t to) {
      if (from >= to) return;
      absent_[from] = to - from;
      absent_bytes_ += to - from;
    };
    keep(begin, block.offset);
    keep(end, begin + bytes);
  }
}

void CachingAllocator::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

int64_t CachingAllocator::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void CachingAllocator::give_back() {
  const std::lock_guard lock(mutex_);
  give_back_free_blocks();
}

AllocatorStatistics CachingAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return {live_, peak_, resident()};
}

void use_allocator(CpuAllocator which) {
  c10::SetCPUAllocator(which == CpuAllocator::caching ? &CachingAllocator::instance()
                                                      : c10::GetDefaultCPUAllocator());
}

}  // namespace mpi4dl
