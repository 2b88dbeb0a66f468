#include "comm/waiting.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <thread>

#include "base/error.hpp"
#include "comm/idle_section.hpp"

namespace mpi4dl {
namespace {

// A poll of MPI costs about 0.1 us: with a core to itself a rank spins for about a tenth of a
// millisecond; otherwise it leaves the core to the rank it waits for almost at once.
constexpr int64_t kSpinsAlone = 1000;
constexpr int64_t kSpinsCrowded = 20;
constexpr int64_t kYields = 2000;
constexpr auto kSleep = std::chrono::microseconds(50);
constexpr int64_t kTurnsPerClockCheck = 256;

std::vector<int> awaited(const WaitReason& why, int self) {
  if (!why.group) return {why.peer};
  std::vector<int> others = *why.group;
  std::erase(others, self);
  return others;
}

}  // namespace

void Waiting::pause(const std::function<WaitReason()>& reason) {
  const int64_t spins = context_.oversubscribed ? kSpinsCrowded : kSpinsAlone;
  const int64_t turn = turns_++;
  if (turn < spins) return;
  if (turn == spins) start_ = std::chrono::steady_clock::now();
  if (turn < spins + kYields) {
    sched_yield();
    if (turn % kTurnsPerClockCheck == 0) check_time(reason);
  } else {
    std::this_thread::sleep_for(kSleep);
    check_time(reason);
  }
}

void Waiting::check_time(const std::function<WaitReason()>& reason) {
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
  if (waited.count() < context_.timeout_seconds) return;
  const WaitReason why = reason();
  const std::vector<int> peers = awaited(why, context_.world_rank);
  throw Error(
      fmt::format("rank {} has waited {:.0f} s for rank{} {} ({} of {} bytes); raise --timeout if "
                  "that is normal",
                  context_.world_rank, waited.count(), peers.size() == 1 ? "" : "s",
                  fmt::join(peers, ", "), why.operation, why.bytes));
}

void wait_until(const std::function<bool()>& done, const CommContext& context,
                const std::function<WaitReason()>& reason) {
  if (done()) return;
  const IdleSection section(context, &IdleTime::communication);
  Waiting waiting(context);
  while (!done()) waiting.pause(reason);
}

}  // namespace mpi4dl
