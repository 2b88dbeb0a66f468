#include "comm/node/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace mpi4dl {
namespace {

/// The result does not matter: the caller looks again at what it waits for.
void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* at_most) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation, value, at_most, nullptr, 0);
}

}  // namespace

void Doorbell::sleep(std::chrono::microseconds at_most) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  const auto whole = std::chrono::duration_cast<seconds>(at_most);
  const timespec time{.tv_sec = whole.count(), .tv_nsec = nanoseconds(at_most - whole).count()};
  futex(asleep_, FUTEX_WAIT, /*value=*/1, &time);
}

void Doorbell::ring() {
  // What was written before must be seen by a waiter whom we do not see listening.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_relaxed) == 0) return;
  asleep_.store(0, std::memory_order_relaxed);
  futex(asleep_, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace mpi4dl
