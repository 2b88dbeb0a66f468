#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace mpi4dl {

/// A rank sleeps by this word in shared memory when it has nothing to do, until another rank of the
/// node has something for it.
///
/// Who waits for something to be written:      Who writes it:
///
///     bell.listen();                              write it
///     if (there) done                             bell.ring();
///     bell.sleep(at_most); and again
///
/// Either the writer finds the waiter listening, or the waiter finds what was written. Nobody
/// enters the kernel unless there is somebody to wake.
class Doorbell {
 public:
  /// After this, a ring ends the next sleep, even if it comes first.
  void listen() { asleep_.store(1, std::memory_order_seq_cst); }
  void sleep(std::chrono::microseconds at_most);
  void ring();

 private:
  std::atomic<uint32_t> asleep_{0};
};

}  // namespace mpi4dl
