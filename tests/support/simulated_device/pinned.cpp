#include "support/simulated_device/pinned.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "support/simulated_device/counting.hpp"
#include "support/simulated_device/libtorch.hpp"
#include "support/simulated_device/settings.hpp"

namespace mpi4dl::simulated {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kUnwritten = 0xFF;

/// Holds all memory that was ever pinned, in sizes that are powers of two, as libtorch's for CUDA
/// does.
class PinnedMemory {
 public:
  static PinnedMemory& instance() {
    static PinnedMemory& memory = *new PinnedMemory;  // tensors may be freed after everything else
    return memory;
  }

  std::byte* take(size_t bytes) {
    const size_t size = std::max(std::bit_ceil(bytes), kAlignment);
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& free = free_[size];
    if (!free.empty()) {
      std::byte* block = free.back();
      free.pop_back();
      return block;
    }
    // CUDA's words, which are not those of a full device.
    TORCH_CHECK(pinned_ + size <= static_cast<size_t>(settings().pinned),
                "CUDA error: out of memory\nCUDA kernel errors might be reported later");
    pinned_ += size;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    std::memset(block, kUnwritten, size);
    sizes_[block] = size;
    counting().pinned_bytes += static_cast<int64_t>(size);
    return block;
  }

  void give_back(std::byte* block) {
    const std::lock_guard lock(mutex_);
    const size_t size = sizes_.at(block);
    std::memset(block, kUnwritten, size);
    free_[size].push_back(block);
  }

  bool holds(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    const std::lock_guard lock(mutex_);
    const auto after = sizes_.upper_bound(byte);
    return after != sizes_.begin() && byte < std::prev(after)->first + std::prev(after)->second;
  }

  int64_t size_of(const std::byte* block) const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(sizes_.at(block));
  }

 private:
  mutable std::mutex mutex_;
  size_t pinned_ = 0;
  std::map<const std::byte*, size_t> sizes_;  // by where they begin
  std::map<size_t, std::vector<std::byte*>> free_;
};

/// Host memory is reported, for meters.
void report_pinned(std::byte* block, int64_t sign) {
  if (!c10::memoryProfilingEnabled()) return;
  const int64_t size = sign * PinnedMemory::instance().size_of(block);
  c10::reportMemoryUsageToProfiler(block, size, 0, 0, c10::Device(c10::kCPU));
}

void unpin(void* address) {
  auto* block = static_cast<std::byte*>(address);
  report_pinned(block, -1);
  PinnedMemory::instance().give_back(block);
}

class PinnedAllocator final : public DeviceAllocator {
 public:
  c10::DataPtr take(size_t bytes) const override {
    const c10::Device host(c10::kCPU);
    if (bytes == 0) return {nullptr, host};
    std::byte* block = PinnedMemory::instance().take(bytes);
    report_pinned(block, 1);
    return {block, block, &unpin, host};
  }
  void copy_bytes(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static PinnedAllocator& allocator = *new PinnedAllocator;
  return allocator;
}

bool is_pinned(const at::Tensor& host) {
  return PinnedMemory::instance().holds(host.data_ptr());
}

}  // namespace mpi4dl::simulated
