#include "comm/waiting.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "comm/idle_section.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

struct Patience {
  int64_t spins, yields;  ///< then it sleeps
};

// A poll asks MPI, which costs up to a microsecond: with a core to itself a rank spins for some
// tenths of a millisecond. Otherwise it leaves the core to the rank it waits for almost at once,
// and sleeps soon: to the kernel a rank that yields is at work, so it would not move another rank
// to this core.
constexpr Patience kAlone{.spins = 1000, .yields = 2000};
constexpr Patience kCrowded{.spins = 20, .yields = 200};
// The longer it has waited, the less another moment matters: it sleeps for a small part of that.
constexpr std::chrono::microseconds kShortSleep(50), kLongSleep(1000);
constexpr int64_t kSleepsPerWait = 64;
constexpr int64_t kPollsPerClockCheck = 256;

std::string awaited(const WaitReason& why, int self) {
  if (why.peer == WaitReason::kOwnDevice) return "its device";
  if (!why.group) return fmt::format("rank {}", why.peer);
  std::vector<int> others = *why.group;
  std::erase(others, self);
  return fmt::format("rank{} {}", others.size() == 1 ? "" : "s", fmt::join(others, ", "));
}

}  // namespace

void Waiting::pause(const std::function<WaitReason()>& reason) {
  const auto [spins, yields] = context_.oversubscribed ? kCrowded : kAlone;
  const int64_t poll = polls_++;
  if (poll < spins) return;
  if (poll == spins) start_ = std::chrono::steady_clock::now();
  if (poll < spins + yields) {
    sched_yield();
    if (poll % kPollsPerClockCheck == 0) check_time(reason);
  } else {
    sleep();
    check_time(reason);
  }
}

/// It does not sleep for long: a message of MPI does not ring.
void Waiting::sleep() {
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start_);
  const auto pause = std::clamp(waited / kSleepsPerWait, kShortSleep, kLongSleep);
  if (!context_.shared_memory) {
    std::this_thread::sleep_for(pause);
    return;
  }
  Doorbell& bell = context_.shared_memory->doorbell();
  if (listening_) bell.sleep(pause);
  bell.listen();
  listening_ = true;
}

void Waiting::check_time(const std::function<WaitReason()>& reason) {
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
  if (waited.count() < context_.timeout_seconds) return;
  const WaitReason why = reason();
  throw Error(
      fmt::format("rank {} has waited {:.0f} s for {} ({} of {} bytes); raise the time-out if that "
                  "is normal",
                  context_.world_rank, waited.count(), awaited(why, context_.world_rank),
                  why.operation, why.bytes));
}

void wait_until(const std::function<bool()>& done, const CommContext& context,
                const std::function<WaitReason()>& reason) {
  if (done()) return;
  const IdleSection section(context, &IdleTime::communication);
  Waiting waiting(context);
  while (!done()) waiting.pause(reason);
}

}  // namespace mpi4dl
