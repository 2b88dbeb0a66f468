// Every rank posts descriptors to the next one and reads those of the one before.
#include "comm/node/descriptor_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "comm/collectives.hpp"
#include "comm/node/shared_memory.hpp"
#include "support/dice.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

class DescriptorQueue : public ::testing::Test {
 protected:
  static constexpr int kTag = 7;

  void SetUp() override {
    if (!world().context().shared_memory) GTEST_SKIP() << "these ranks do not share memory";
    const int ranks = comm_.size(), rank = comm_.rank();
    sender_.emplace(comm_, (rank + 1) % ranks, kTag);
    receiver_.emplace(comm_, (rank + ranks - 1) % ranks, kTag);
  }

  /// Posts a payload whose bytes all say which one it is.
  int64_t post(int64_t bytes, int64_t mark) {
    return sender_->post(std::vector<std::byte>(bytes, static_cast<std::byte>(mark)));
  }

  std::span<std::byte> await(int64_t number) {
    comm_.await([&] { return receiver_->find(number).data() != nullptr; },
                [] { return WaitReason{"descriptor", 0, 0, nullptr}; });
    return receiver_->find(number);
  }

  void expect_payload(int64_t number, int64_t bytes, int64_t mark) {
    const std::span<std::byte> payload = await(number);
    EXPECT_EQ(static_cast<int64_t>(payload.size()), bytes);
    EXPECT_TRUE(std::ranges::all_of(
        payload, [&](std::byte byte) { return byte == static_cast<std::byte>(mark); }));
    receiver_->acknowledge(number);
  }

  Communicator comm_ = *world().split(0);
  std::optional<DescriptorSender> sender_;
  std::optional<DescriptorReceiver> receiver_;
};

TEST_F(DescriptorQueue, DeliversInOrderHoweverFarTheReceiverIsBehind) {
  Dice dice(1);
  std::vector<int64_t> sizes;
  int64_t read = 0;
  const auto read_some = [&](int64_t count) {
    for (; count > 0; --count, ++read) expect_payload(receiver_->expect(), sizes[read], read);
  };
  for (int round = 0; round < 100; ++round) {
    for (int64_t more = dice.pick(0, 20); more > 0; --more) {
      const auto mark = static_cast<int64_t>(sizes.size());
      sizes.push_back(dice.chance(0.5) ? 100 : dice.pick(0, 5000));
      post(sizes.back(), mark);
    }
    read_some(dice.pick(0, static_cast<int64_t>(sizes.size()) - read));
  }
  read_some(static_cast<int64_t>(sizes.size()) - read);
}

TEST_F(DescriptorQueue, MayBeAcknowledgedInAnyOrder) {
  for (int64_t round = 0; round < 20; ++round) {
    for (int64_t i = 0; i < 3; ++i) post(64, i);
    const int64_t first = receiver_->expect();
    receiver_->expect(), receiver_->expect();
    for (const int64_t i : {2, 0, 1}) expect_payload(first + i, 64, i);
  }
}

TEST_F(DescriptorQueue, HasNothingBeforeItIsPostedNorAcknowledgedBeforeItIsRead) {
  const int64_t number = receiver_->expect();
  EXPECT_EQ(receiver_->find(number).data(), nullptr);
  barrier(comm_);
  const int64_t mine = post(8, 1);
  await(number);
  barrier(comm_);  // all have seen theirs, nobody has acknowledged it
  EXPECT_FALSE(sender_->acknowledged(mine));
  barrier(comm_);
  receiver_->acknowledge(number);
  comm_.await([&] { return sender_->acknowledged(mine); },
              [] { return WaitReason{"descriptor", 0, 0, nullptr}; });
}

TEST_F(DescriptorQueue, KeepsMemoryAliveUntilItIsAcknowledged) {
  SharedMemory& memory = *comm_.context().shared_memory;
  const auto post_with = [&](std::weak_ptr<std::byte>& watched) {
    std::shared_ptr<std::byte> kept = memory.allocate(100);
    watched = kept;
    return sender_->post({}, std::move(kept));
  };
  std::weak_ptr<std::byte> first, second;
  const int64_t mine = post_with(first);
  EXPECT_FALSE(first.expired());
  expect_payload(receiver_->expect(), 0, 0);
  comm_.await([&] { return sender_->acknowledged(mine); },
              [] { return WaitReason{"descriptor", 0, 0, nullptr}; });
  post_with(second);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  expect_payload(receiver_->expect(), 0, 0);
}

TEST_F(DescriptorQueue, OutlivesItsSenderUntilItIsRead) {
  post(1000, 42);
  const int64_t number = receiver_->expect();
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    expect_payload(number, 1000, 42);
  });
  sender_.reset();  // waits
  late.join();
}

}  // namespace
}  // namespace mpi4dl::testing
