#include "comm/shared_memory.hpp"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/memory_meter.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kAlignment = 4096;
constexpr int64_t kCacheLine = 64;

int64_t round_up(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::byte* map(int descriptor, int64_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

}  // namespace

/// This rank's own arena: a growing region whose freed blocks are kept by size.
struct SharedMemory::Arena {
  int descriptor = -1;
  int64_t capacity = 0;
  std::byte* base = nullptr;

  std::mutex mutex;
  int64_t used = 0;
  std::multimap<int64_t, int64_t> free_blocks;  // size -> offset

  Arena() {
    descriptor = memfd_create("mpi4dl", MFD_CLOEXEC);
    capacity = round_up(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
    if (descriptor >= 0 && ftruncate(descriptor, capacity) == 0) base = map(descriptor, capacity);
  }
  ~Arena() {
    if (base != nullptr) munmap(base, capacity);
    if (descriptor >= 0) close(descriptor);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::vector<int64_t> free_flags;  // offsets

  struct Block {
    int64_t offset, bytes;
  };

  /// The smallest kept block that wastes at most an eighth, or fresh memory.
  Block allocate(int64_t bytes) {
    const std::lock_guard lock(mutex);
    const auto fit = free_blocks.lower_bound(bytes);
    if (fit != free_blocks.end() && fit->first <= bytes + bytes / 8) {
      const Block block{fit->second, fit->first};
      free_blocks.erase(fit);
      return block;
    }
    ensure(used + bytes <= capacity, "no room for {} more bytes in {} bytes of shared memory",
           bytes, capacity);
    used += bytes;
    return {used - bytes, bytes};
  }

  /// A word of its own cache line, so that ranks that poll do not disturb each other.
  int64_t allocate_flag() {
    if (const std::lock_guard lock(mutex); !free_flags.empty()) {
      const int64_t offset = free_flags.back();
      free_flags.pop_back();
      return offset;
    }
    const Block page = allocate(kAlignment);
    const std::lock_guard lock(mutex);
    for (int64_t at = kCacheLine; at < kAlignment; at += kCacheLine)
      free_flags.push_back(page.offset + at);
    return page.offset;
  }

  void release_flag(int64_t offset) {
    const std::lock_guard lock(mutex);
    free_flags.push_back(offset);
  }

  void release(const Block& block) {
    const std::lock_guard lock(mutex);
    free_blocks.emplace(block.bytes, block.offset);
  }
};

std::shared_ptr<SharedMemory> SharedMemory::create(const Communicator& node) {
  std::shared_ptr<SharedMemory> memory(new SharedMemory);
  memory->arena_ = std::make_unique<Arena>();
  const int mapped = memory->map_peers(node) ? 1 : 0;
  for (const int theirs : all_gather(node, mapped))
    if (theirs == 0) return nullptr;
  return memory;
}

SharedMemory::~SharedMemory() {
  for (const Mapping& peer : peers_)
    if (peer.base != arena_->base) munmap(peer.base, arena_->capacity);
}

bool SharedMemory::map_peers(const Communicator& node) {
  struct Door {
    pid_t process;
    int descriptor;
  };
  const std::vector<Door> doors = all_gather(node, Door{getpid(), arena_->descriptor});
  for (int rank = 0; rank < node.size(); ++rank) {
    std::byte* base = arena_->base;
    if (rank != node.rank()) {
      const std::string path =
          fmt::format("/proc/{}/fd/{}", doors[rank].process, doors[rank].descriptor);
      const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
      base = descriptor < 0 ? nullptr : map(descriptor, arena_->capacity);
      if (descriptor >= 0) close(descriptor);
    }
    if (base == nullptr) return false;
    peers_.push_back({node.world_rank(rank), base});
  }
  return true;
}

at::Tensor SharedMemory::empty(std::span<const int64_t> shape, c10::ScalarType type,
                               c10::MemoryFormat format) {
  const at::IntArrayRef sizes(shape.data(), shape.size());
  // Strides come from a tensor without storage.
  const at::Tensor like =
      at::empty(sizes, at::TensorOptions(at::kMeta).dtype(type).memory_format(format));
  const auto bytes = static_cast<int64_t>(like.nbytes());
  const Arena::Block block = arena_->allocate(round_up(std::max<int64_t>(bytes, 1)));
  report_memory(arena_->base + block.offset, bytes);
  auto give_back = [self = shared_from_this(), block, bytes](void* data) {
    report_memory(data, -bytes);
    self->arena_->release(block);
  };
  return at::from_blob(arena_->base + block.offset, sizes, like.strides(), give_back,
                       at::TensorOptions(type));
}

std::optional<int64_t> SharedMemory::offset_of(const at::Tensor& tensor) const {
  if (!tensor.is_cpu()) return std::nullopt;
  const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
  const int64_t offset = data - arena_->base;
  if (offset < 0 || offset >= arena_->capacity) return std::nullopt;
  return offset;
}

std::byte* SharedMemory::address(int world_rank, int64_t offset) const {
  for (const Mapping& peer : peers_)
    if (peer.world_rank == world_rank) return peer.base + offset;
  return nullptr;
}

SharedMemory::Flag SharedMemory::lower_flag() {
  Flag flag;
  flag.offset_ = arena_->allocate_flag();
  auto* word = reinterpret_cast<std::atomic<int>*>(arena_->base + flag.offset_);
  word->store(0, std::memory_order_relaxed);
  flag.word_ = {word, [self = shared_from_this(), offset = flag.offset_](std::atomic<int>*) {
                  self->arena_->release_flag(offset);
                }};
  return flag;
}

void SharedMemory::raise_flag(int world_rank, int64_t offset) const {
  reinterpret_cast<std::atomic<int>*>(address(world_rank, offset))
      ->store(1, std::memory_order_release);
}

bool SharedMemory::Flag::raised() const {
  return word_->load(std::memory_order_acquire) == 1;
}

int64_t SharedMemory::reserved_bytes() const {
  const std::lock_guard lock(arena_->mutex);
  return arena_->used;
}

at::Tensor empty_for_exchange(const std::shared_ptr<SharedMemory>& memory,
                              std::span<const int64_t> shape, c10::ScalarType type,
                              c10::MemoryFormat format) {
  if (memory) return memory->empty(shape, type, format);
  return at::empty(at::IntArrayRef(shape.data(), shape.size()),
                   at::TensorOptions(type).memory_format(format));
}

}  // namespace mpi4dl
