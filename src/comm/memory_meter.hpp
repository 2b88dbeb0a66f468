#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace mpi4dl {

struct CommContext;

/// Measures what tensors this thread allocates and frees during the meter's life, in ordinary and
/// in shared memory.
class MemoryMeter {
 public:
  MemoryMeter();

  /// Bytes more than at the start: now, and at the worst moment.
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

/// Memory of this rank that is in use now, code and libraries included. The system also counts each
/// page of other ranks' shared memory that this rank has looked at; these are theirs.
int64_t resident_bytes(const CommContext& context);

}  // namespace mpi4dl
