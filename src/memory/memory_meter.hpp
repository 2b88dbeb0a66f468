#pragma once

#include <c10/core/DeviceType.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace mpi4dl {

/// Measures what tensors this thread allocates and frees during the meter's life: of the host in
/// ordinary and in shared memory, or of a type of device.
class MemoryMeter {
 public:
  explicit MemoryMeter(c10::DeviceType device = c10::DeviceType::CPU);

  /// Counts bytes more than at the start: now, and at the worst moment.
  int64_t live_bytes() const;
  int64_t peak_bytes() const;

 private:
  class Listener;
  std::shared_ptr<Listener> listener_;
  c10::DebugInfoGuard guard_;
};

/// While it lives, meters of this thread see nothing: for tensors that come from other threads.
class UnmeteredSection {
 public:
  UnmeteredSection();

 private:
  c10::DebugInfoGuard guard_;
};

/// Tells the meter of memory that does not come from libtorch's allocator; negative when freed.
void report_memory(void* data, int64_t bytes);

}  // namespace mpi4dl
