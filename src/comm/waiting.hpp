#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/context.hpp"

namespace mpi4dl {

/// Says what a wait is for, in the watchdog's sentence.
struct WaitReason {
  const char* operation = "";  ///< for example "receive"
  int64_t bytes = 0;
  static constexpr int kOwnDevice = -2;
  int peer = -1;                                  ///< the world rank that must act, kOwnDevice, or
  std::shared_ptr<const std::vector<int>> group;  ///< all of these, except this rank itself
};

/// Waits politely and watched: it spins while an answer is likely within microseconds, then yields,
/// then sleeps by its doorbell, because ranks often outnumber cores; it throws Error after the
/// context's time-out.
class Waiting {
 public:
  explicit Waiting(const CommContext& context) : context_(context) {}

  /// Pauses between two polls of a loop. `reason` is only asked when time is up.
  void pause(const std::function<WaitReason()>& reason);

 private:
  void sleep();
  void check_time(const std::function<WaitReason()>& reason);

  const CommContext& context_;
  int64_t polls_ = 0;
  std::chrono::steady_clock::time_point start_{};
  bool listening_ = false;  // to the doorbell
};

/// Waits until `done()`; for conditions other than MPI requests.
void wait_until(const std::function<bool()>& done, const CommContext& context,
                const std::function<WaitReason()>& reason);

}  // namespace mpi4dl
