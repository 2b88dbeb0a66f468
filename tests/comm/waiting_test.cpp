// The watchdog: whoever waits too long says who waits for whom, and for what. In each test rank 0
// waits in vain; the others do their part only after it has given up, so that nothing is left over.
#include "comm/waiting.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <regex>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "comm/idle_section.hpp"
#include "support/scoped.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int kTag = 3;

/// Returns what the watchdog says when this waits in vain; nothing where the wait ends.
std::string sentence_of(double timeout_seconds, const std::function<void()>& wait) {
  const Scoped<double> timeout(world().context().timeout_seconds, timeout_seconds);
  try {
    wait();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The wait ends with a sentence that begins "rank 0 has waited <some> s for <whom and what>".
void expect_given_up(const std::string& whom_and_what, const std::function<void()>& wait) {
  if (world().rank() == 0) {
    const std::string sentence = sentence_of(/*timeout_seconds=*/0.2, wait);
    std::smatch match;
    ASSERT_TRUE(std::regex_match(
        sentence, match, std::regex("rank 0 has waited [0-9]+ s for (.*); raise the time-out .*")))
        << sentence;
    EXPECT_EQ(match[1], whom_and_what);
  }
  barrier(world());
}

TEST(Watchdog, NamesBothEndsOfAReceive) {
  const Communicator comm = *world().split(0);
  const at::Tensor buffer = at::zeros({100}, at::kDouble);
  expect_given_up("rank 1 (receive of 800 bytes)", [&] { comm.receive(buffer, 1, kTag).finish(); });
  if (comm.rank() == 1) comm.send(buffer, 0, kTag).finish();
  barrier(world());
}

TEST(Watchdog, NamesBothEndsOfASend) {
  const Communicator comm = *world().split(0);
  // Too large for MPI to keep; it leaves only when somebody receives.
  const at::Tensor large = at::zeros({int64_t{1} << 20}, at::kDouble);
  expect_given_up("rank 1 (send of 8388608 bytes)", [&] { comm.send(large, 1, kTag).finish(); });
  if (comm.rank() == 1) comm.receive(large, 0, kTag).finish();
  barrier(world());
}

TEST(Watchdog, NamesEveryoneThatACollectiveWaitsFor) {
  const Communicator comm = *world().split(0);
  std::string others = comm.size() > 2 ? "ranks 1" : "rank 1";
  for (int peer = 2; peer < comm.size(); ++peer) others += fmt::format(", {}", peer);
  expect_given_up(others + " (barrier of 0 bytes)", [&] { barrier(comm); });
  if (comm.rank() != 0) barrier(comm);
  barrier(world());
}

TEST(Watchdog, NamesRanksByTheirNumberInTheWorld) {
  const Communicator reversed = *world().split(0, -world().rank());
  const int last = world().size() - 1;
  const at::Tensor buffer = at::zeros({1}, at::kLong);
  expect_given_up(fmt::format("rank {} (receive of 8 bytes)", last),
                  [&] { reversed.receive(buffer, 0, kTag).finish(); });
  if (reversed.rank() == 0) reversed.send(buffer, last, kTag).finish();
  barrier(world());
}

TEST(Watchdog, IsSilentWhereTheOthersAreOnlyLate) {
  if (world().rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(sentence_of(/*timeout_seconds=*/30, [] { barrier(world()); }), "");
}

TEST(WaitUntil, EndsWhenItsConditionHolds) {
  int left = 5000;  // beyond spinning and yielding
  wait_until([&] { return --left == 0; }, world().context(), [] { return WaitReason{}; });
  EXPECT_EQ(left, 0);
}

TEST(WaitUntil, GivesUpWhenTimeIsUpAndNotBefore) {
  const auto start = std::chrono::steady_clock::now();
  const std::string sentence = sentence_of(/*timeout_seconds=*/0.2, [] {
    wait_until([] { return false; }, world().context(),
               [] { return WaitReason{"halo", 42, 7, nullptr}; });
  });
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited.count(), 0.2);
  EXPECT_LT(waited.count(), 10);
  EXPECT_NE(sentence.find("for rank 7 (halo of 42 bytes)"), std::string::npos) << sentence;
}

/// Measures how much longer this rank was idle.
IdleTime idle_during(const std::function<void()>& work) {
  const IdleTime before = world().context().idle;
  work();
  const IdleTime after = world().context().idle;
  return {after.communication - before.communication, after.waiting - before.waiting};
}

void wait_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  wait_until([&] { return std::chrono::steady_clock::now() >= end; }, world().context(),
             [] { return WaitReason{}; });
}

TEST(IdleTime, CountsWaits) {
  const IdleTime idle = idle_during([] { wait_for(std::chrono::milliseconds(20)); });
  EXPECT_GE(idle.communication, 0.019);
  EXPECT_EQ(idle.waiting, 0);
}

TEST(IdleTime, IsOfTheOutermostKind) {
  const IdleTime idle = idle_during([] {
    const IdleSection stage(world().context(), &IdleTime::waiting);
    wait_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(idle.communication, 0);
  EXPECT_GE(idle.waiting, 0.019);
}

TEST(IdleTime, EndsWithAWaitThatFails) {
  EXPECT_NE(sentence_of(/*timeout_seconds=*/0.01,
                        [] {
                          wait_until([] { return false; }, world().context(),
                                     [] { return WaitReason{"halo", 42, 7, nullptr}; });
                        }),
            "");
  EXPECT_GE(idle_during([] { wait_for(std::chrono::milliseconds(5)); }).communication, 0.004);
}

}  // namespace
}  // namespace mpi4dl::testing
