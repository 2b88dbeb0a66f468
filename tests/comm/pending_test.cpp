#include "comm/pending.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "comm/collectives.hpp"
#include "support/scoped.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

// Large enough that MPI does not copy it when it is sent, and that freed memory is given away.
constexpr int64_t kElements = int64_t{1} << 19;
constexpr int kTag = 5;

int rank() {
  return world().rank();
}
int next() {
  return (rank() + 1) % world().size();
}
int previous() {
  return (rank() + world().size() - 1) % world().size();
}

at::Tensor message_from(int sender) {
  return at::full({kElements}, sender, at::kDouble);
}
at::Tensor buffer() {
  return at::empty({kElements}, at::kDouble);
}

/// Takes freed blocks of a message's size and writes into them.
void overwrite_freed_memory() {
  for (int i = 0; i < 4; ++i) at::full({kElements}, -1, at::kDouble);
}

/// Tests that a message in flight belongs to this rank alone, in both ways of carrying it.
class Flight : public ::testing::TestWithParam<bool> {
  Scoped<bool> staged_{world().context().stage_through_host, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Carried, Flight, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "staged" : "direct"; });

TEST_P(Flight, OwnsItsBufferUntilItArrives) {
  Pending arrival = world().receive(buffer(), previous(), kTag);
  barrier(world());
  Pending sent = world().send(message_from(rank()), next(), kTag);
  overwrite_freed_memory();
  const at::Tensor received = std::move(arrival).wait();
  EXPECT_TRUE(received.eq(previous()).all().item<bool>());
  sent.finish();
}

TEST_P(Flight, SurvivesBeingMoved) {
  Pending arrival = world().receive(buffer(), previous(), kTag);
  Pending moved = std::move(arrival);
  Pending assigned;
  assigned = std::move(moved);
  Pending sent = world().send(message_from(rank()), next(), kTag);
  EXPECT_TRUE(std::move(assigned).wait().eq(previous()).all().item<bool>());
}

TEST_P(Flight, EndsBeforeItsMemoryIsFreed) {
  const at::Tensor target = buffer();
  {
    Pending arrival = world().receive(target, previous(), kTag);
    Pending sent = world().send(message_from(rank()), next(), kTag);
  }
  EXPECT_TRUE(target.eq(previous()).all().item<bool>());
}

TEST_P(Flight, IsReadyOnlyAfterTheOtherSideHasActed) {
  Pending arrival = world().receive(buffer(), previous(), kTag);
  EXPECT_FALSE(arrival.ready());
  barrier(world());
  Pending sent = world().send(message_from(rank()), next(), kTag);
  while (!arrival.ready()) std::this_thread::yield();
  EXPECT_TRUE(arrival.ready());
  EXPECT_TRUE(std::move(arrival).wait().eq(previous()).all().item<bool>());
}

TEST(Pending, OfNothingIsReady) {
  Pending nothing;
  EXPECT_TRUE(nothing.ready());
  nothing.finish();
}

TEST(Pending, LeavesTheRestToItsCallerAfterOneLastAction) {
  int calls = 0;
  Pending arrival = world().receive(buffer(), previous(), kTag);
  arrival.then([&calls] { ++calls; });
  EXPECT_EQ(calls, 0);
  Pending sent = world().send(message_from(rank()), next(), kTag);
  arrival.finish();
  arrival.finish();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace mpi4dl::testing
