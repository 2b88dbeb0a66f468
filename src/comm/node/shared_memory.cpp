#include "comm/node/shared_memory.hpp"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "comm/collectives.hpp"
#include "memory/memory_meter.hpp"

namespace mpi4dl {
namespace {

/// Names a rank's arena, and what it is recognised by: another container may see another process
/// under the same number.
struct ArenaHandle {
  int64_t process, descriptor, device, file, header;
};

std::pair<int64_t, int64_t> identity(int descriptor) {
  struct stat status{};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) return {-1, -1};
  return {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino)};
}

MappedFile attach(const ArenaHandle& handle, int64_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  MappedFile mapping;
  if (descriptor >= 0 && identity(descriptor) == std::pair(handle.device, handle.file))
    mapping = MappedFile(descriptor, bytes);
  if (descriptor >= 0) close(descriptor);
  return mapping;
}

}  // namespace

SharedMemory::SharedMemory() {
  if (arena_.base() == nullptr) return;
  header_ = new (arena_.base() + arena_.allocate(sizeof(Header)).offset) Header;
}

std::shared_ptr<SharedMemory> SharedMemory::create(const Communicator& node) {
  std::shared_ptr<SharedMemory> memory(new SharedMemory);
  const int mapped = memory->map_peers(node) ? 1 : 0;
  for (const int theirs : all_gather(mapped, node))
    if (theirs == 0) return nullptr;
  return memory;
}

bool SharedMemory::map_peers(const Communicator& node) {
  const auto [device, file] = identity(arena_.descriptor());
  const int64_t header = reinterpret_cast<std::byte*>(header_) - arena_.base();
  const auto handles =
      all_gather(ArenaHandle{getpid(), arena_.descriptor(), device, file, header}, node);
  for (int rank = 0; rank < node.size(); ++rank) {
    MappedFile mapping;
    if (rank != node.rank()) mapping = attach(handles[rank], arena_.capacity());
    std::byte* base = rank == node.rank() ? arena_.base() : mapping.base();
    if (base == nullptr) return false;
    auto* theirs = reinterpret_cast<Header*>(base + handles[rank].header);
    peers_.push_back({node.world_rank(rank), std::move(mapping), base, theirs});
  }
  return true;
}

at::Tensor SharedMemory::empty(std::span<const int64_t> shape, c10::ScalarType type,
                               c10::MemoryFormat format) {
  const at::IntArrayRef sizes(shape.data(), shape.size());
  // Strides come from a tensor without storage.
  const at::Tensor like =
      at::empty(sizes, at::TensorOptions(at::kMeta).dtype(type).memory_format(format));
  std::shared_ptr<std::byte> memory = allocate(static_cast<int64_t>(like.nbytes()));
  std::byte* data = memory.get();
  auto give_back = [memory = std::move(memory)](void*) mutable { memory.reset(); };
  return at::from_blob(data, sizes, like.strides(), std::move(give_back), at::TensorOptions(type));
}

std::shared_ptr<std::byte> SharedMemory::allocate(int64_t bytes) {
  const Arena::Block block = arena_.allocate(bytes);
  std::byte* data = arena_.base() + block.offset;
  report_memory(data, bytes);
  return {data, [self = shared_from_this(), block, bytes](std::byte* memory) {
            report_memory(memory, -bytes);
            self->arena_.release(block);
          }};
}

std::optional<int64_t> SharedMemory::offset_of(const at::Tensor& tensor) const {
  if (!tensor.is_cpu()) return std::nullopt;
  return offset_of(static_cast<const std::byte*>(tensor.data_ptr()));
}

std::optional<int64_t> SharedMemory::offset_of(const std::byte* data) const {
  const int64_t offset = data - arena_.base();
  if (offset < 0 || offset >= arena_.capacity()) return std::nullopt;
  return offset;
}

const SharedMemory::Peer* SharedMemory::find(int world_rank) const {
  for (const Peer& peer : peers_)
    if (peer.world_rank == world_rank) return &peer;
  return nullptr;
}

std::byte* SharedMemory::address(int world_rank, int64_t offset) const {
  const Peer* peer = find(world_rank);
  return peer == nullptr ? nullptr : peer->base + offset;
}

void SharedMemory::ring(int world_rank) const {
  find(world_rank)->header->doorbell.ring();
}

bool SharedMemory::first_to_ask() const {
  return peers_.front().header->asked.exchange(1) == 0;
}

int64_t SharedMemory::reserved_bytes() const {
  return arena_.used();
}

}  // namespace mpi4dl
