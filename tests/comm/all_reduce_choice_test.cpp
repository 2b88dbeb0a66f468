#include "comm/all_reduce_choice.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/node/node_all_reduce.hpp"
#include "comm/node/shared_memory.hpp"
#include "support/scoped.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

using enum AllReduceAlgorithm;

constexpr int64_t kSmall = 64, kBuffer = NodeAllReduce::kCapacity, kLarge = int64_t{1} << 20;

// The choice -------------------------------------------------------------------------------------

TEST(AllReduceChoice, OneRankHasNothingToReduce) {
  for (const bool shared : {false, true})
    EXPECT_EQ(choose_all_reduce({.bytes = kLarge, .ranks = 1, .shared_memory = shared}), none);
}

TEST(AllReduceChoice, SmallMessagesOfANodeTakeOneRoundAndLargeOnesShards) {
  AllReduceCase node{.ranks = 4, .shared_memory = true};
  const auto choice = [&](int64_t bytes) {
    node.bytes = bytes;
    return choose_all_reduce(node);
  };
  EXPECT_EQ(choice(0), shared_memory);
  EXPECT_EQ(choice(kBuffer), shared_memory);
  EXPECT_EQ(choice(kBuffer + 1), sharded_in_node);
  node.shardable = false;
  EXPECT_EQ(choice(kBuffer), shared_memory);
  EXPECT_EQ(choice(kBuffer + 1), mpi) << "moments are not cut into shards";
}

TEST(AllReduceChoice, SmallMessagesOfFewNodesGoToEverybody) {
  EXPECT_EQ(choose_all_reduce({.bytes = kSmall, .ranks = 8}), direct);
  EXPECT_EQ(choose_all_reduce({.bytes = kSmall, .ranks = 9}), mpi) << "too many ranks";
  EXPECT_EQ(choose_all_reduce({.bytes = 32768, .ranks = 2}), direct);
  EXPECT_EQ(choose_all_reduce({.bytes = 32768, .ranks = 3}), mpi) << "too many bytes to send";
}

TEST(AllReduceChoice, WhatMpiCannotUseIsCopied) {
  for (const int64_t bytes : {kSmall, kLarge}) {
    EXPECT_EQ(choose_all_reduce({.bytes = bytes, .ranks = 2, .mpi_reads = false}), staged_mpi);
    EXPECT_EQ(choose_all_reduce({.bytes = bytes, .ranks = 2, .host = false, .mpi_reads = false}),
              staged_mpi)
        << "holes, or memory of a device";
    EXPECT_EQ(choose_all_reduce({.bytes = bytes, .ranks = 2, .host = false}), mpi)
        << "MPI reads the device's memory";
  }
}

TEST(AllReduceChoice, SaysWhy) {
  EXPECT_EQ(explain({.bytes = 64, .ranks = 1}),
            "64 bytes on 1 rank stay as they are, because there is no other rank");
  EXPECT_EQ(explain({.bytes = 64, .ranks = 4, .shared_memory = true}),
            "64 bytes on 4 ranks go through shared memory in one round, because they fit its "
            "buffer");
  EXPECT_EQ(explain({.bytes = kLarge, .ranks = 4, .shared_memory = true}),
            "1048576 bytes on 4 ranks are reduced in shards, because the ranks can read each "
            "other's memory");
  EXPECT_EQ(explain({.bytes = 64, .ranks = 4}),
            "64 bytes on 4 ranks go from everybody to everybody, because few small messages take "
            "the time of one");
  EXPECT_EQ(explain({.bytes = kLarge, .ranks = 4}),
            "1048576 bytes on 4 ranks are left to MPI, because they are too many for messages to "
            "everybody");
  EXPECT_EQ(explain({.bytes = 64, .ranks = 4, .mpi_reads = false}),
            "64 bytes on 4 ranks are left to MPI in a copy, because it cannot use them where they "
            "lie");
}

// What a tensor and a group say of themselves
// ------------------------------------------------------

AllReduceAlgorithm choice(const at::Tensor& tensor, const Communicator& group) {
  return choose_all_reduce(all_reduce_case(tensor, group));
}

TEST(AllReduceCase, KnowsWhetherRanksShareMemory) {
  if (!world().context().shared_memory) GTEST_SKIP() << "these ranks do not share memory";
  const Communicator group = *world().split(0);
  const bool alone = world().size() == 1;
  EXPECT_EQ(choice(at::zeros({8}), group), alone ? none : shared_memory);
  EXPECT_EQ(choice(at::zeros({1 << 20}), group), alone ? none : sharded_in_node);
}

TEST(AllReduceCase, KnowsWhetherRanksAreApart) {
  const Scoped<std::shared_ptr<SharedMemory>> apart(world().context().shared_memory, nullptr);
  const Communicator group = *world().split(0);
  const bool alone = world().size() == 1;
  EXPECT_EQ(choice(at::zeros({8}), group), alone ? none : direct);
  EXPECT_EQ(choice(at::zeros({1 << 20}), group), alone ? none : mpi);
}

TEST(AllReduceCase, KnowsWhatMpiCannotUse) {
  const bool alone = world().size() == 1;
  const at::Tensor holes = at::zeros({4, 4}).slice(1, 0, 4, 2);
  EXPECT_EQ(choice(holes, world()), alone ? none : staged_mpi);
  const Scoped<bool> staged(world().context().stage_through_host, true);
  const Communicator group = *world().split(0);
  EXPECT_EQ(choice(at::zeros({8}), group), alone ? none : staged_mpi);
}

}  // namespace
}  // namespace mpi4dl::testing
