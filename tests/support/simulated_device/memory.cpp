#include "support/simulated_device/memory.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/simulated_device.hpp"
#include "support/simulated_device/libtorch.hpp"
#include "support/simulated_device/order.hpp"
#include "support/simulated_device/settings.hpp"

namespace mpi4dl::simulated {
namespace {

constexpr int64_t kGrain = 512;
constexpr int kNobodyHasWritten = 0xFF;

int64_t size(const Block& block) {
  return static_cast<int64_t>(block.bytes.end() - block.bytes.begin());
}

void* address(const Block& block) {
  return reinterpret_cast<void*>(block.bytes.begin());
}

void fill(const Block& block) {
  std::memset(bytes_behind(address(block)), kNobodyHasWritten, size(block));
}

}  // namespace

Memory& Memory::instance() {
  static Memory& memory = *new Memory;  // tensors may be freed after everything else
  return memory;
}

Block& Memory::make(int device, Agent stream, int64_t bytes) {
  int64_t& reserved = reserved_[device];
  TORCH_CHECK(reserved + bytes <= kBytesOfDevice, "no addresses are left on simulated device ",
              device);
  const Address begin = first_address(device) + reserved;
  reserved += bytes;
  blocks_.push_back({{begin, bytes}, device, stream, {}, {}});
  fill(blocks_.back());
  return blocks_.back();
}

Block& Memory::take(int device, Agent stream, int64_t bytes) {
  expect_device(device);
  bytes = (bytes + kGrain - 1) / kGrain * kGrain;
  const std::lock_guard lock(mutex_);
  reuse_what_has_been_used();
  const int64_t live = live_of_[device];
  if (live + bytes > settings().memory)
    throw c10::OutOfMemoryError(
        {__func__, __FILE__, __LINE__},
        fmt::format("simulated device {} is out of memory: {} bytes of {} are in use, {} more "
                    "were asked for",
                    device, live, settings().memory, bytes));
  Pool& free = free_[stream];
  const auto found = free.lower_bound(bytes);
  // Blocks are not cut; a much larger one is left for what needs it.
  const bool fits = found != free.end() && found->first <= bytes + bytes / 4;
  Block& block = fits ? *found->second : make(device, stream, bytes);
  if (fits) free.erase(found);
  in_use_[block.bytes.begin()] = &block;
  live_of_[device] += size(block);
  live_ += size(block);
  peak_ = std::max(peak_, live_);
  Order::instance().takes(stream, block.history, block.bytes);
  return block;
}

void Memory::give_back(Block& block) {
  const std::lock_guard lock(mutex_);
  in_use_.erase(block.bytes.begin());
  Order& order = Order::instance();
  order.frees(block.owner, block.history, block.users);
  fill(block);
  if (block.users.empty()) return pool(block);
  Clock until;
  for (const Agent user : std::exchange(block.users, {})) until.learn(order.after(user));
  used_.push_back({&block, until});
}

void Memory::pool(Block& block) {
  live_of_[block.device] -= size(block);
  live_ -= size(block);
  Pool& free = free_[block.owner];
  free.emplace_hint(free.lower_bound(size(block)), size(block), &block);  // the next to be taken
}

void Memory::reuse_what_has_been_used() {
  std::erase_if(used_, [&](const Used& used) {
    const bool over = Order::instance().host_knows(used.until);
    if (over) pool(*used.block);
    return over;
  });
}

Block* Memory::find(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto here = reinterpret_cast<Address>(address);
  auto after = in_use_.upper_bound(here);
  if (after == in_use_.begin()) return nullptr;
  Block* block = std::prev(after)->second;
  return here < block->bytes.end() ? block : nullptr;
}

Block& Memory::at(const void* address) {
  Block* block = find(address);
  if (block == nullptr) throw Refused("this is memory of a simulated device that was freed");
  return *block;
}

void Memory::record_user(const void* address, Agent stream) {
  Block& block = at(address);
  const std::lock_guard lock(mutex_);
  if (stream != block.owner && std::ranges::find(block.users, stream) == block.users.end())
    block.users.push_back(stream);
}

int64_t Memory::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

int64_t Memory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void Memory::forget_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = live_;
}

namespace {

void report(void* data, int64_t bytes, c10::Device device) {
  if (c10::memoryProfilingEnabled()) c10::reportMemoryUsageToProfiler(data, bytes, 0, 0, device);
}

void free_block(void* context) {
  auto& block = *static_cast<Block*>(context);
  report(address(block), -size(block), device(block.device));
  Memory::instance().give_back(block);
}

class Allocator final : public DeviceAllocator {
 public:
  c10::DataPtr take(size_t bytes) const override {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
    const c10::Device here = guard.getDevice();
    if (bytes == 0) return {nullptr, here};
    Block& block = Memory::instance().take(here.index(), agent_of(guard.getStream(here)),
                                           static_cast<int64_t>(bytes));
    report(address(block), size(block), here);
    return {address(block), &block, &free_block, here};
  }

  /// libtorch calls it to copy a storage behind our back, which would be in no stream's order.
  void copy_bytes(void* /*target*/, const void* /*source*/, size_t /*bytes*/) const override {
    throw Refused("a storage of the simulated device is copied outside of streams");
  }
};

}  // namespace

c10::Allocator& device_allocator() {
  static Allocator& allocator = *new Allocator;
  return allocator;
}

}  // namespace mpi4dl::simulated
