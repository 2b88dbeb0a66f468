// Every rank writes letters to the next one and reads those of the one before.
#include "comm/mailbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "comm/shared_memory.hpp"
#include "support/dice.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

class Mail : public ::testing::Test {
 protected:
  static constexpr int kTag = 7;

  void SetUp() override {
    if (!world().context().shared_memory) GTEST_SKIP() << "these ranks do not share memory";
    const int ranks = comm_.size(), rank = comm_.rank();
    outbox_.emplace(comm_, (rank + 1) % ranks, kTag);
    inbox_.emplace(comm_, (rank + ranks - 1) % ranks, kTag);
  }

  /// A letter whose bytes all say which one it is.
  int64_t write(int64_t bytes, int64_t mark) {
    return outbox_->post(std::vector<std::byte>(bytes, static_cast<std::byte>(mark)));
  }

  std::span<std::byte> await(int64_t number) {
    comm_.await([&] { return inbox_->find(number).data() != nullptr; },
                [] { return WaitReason{"letter", 0, 0, nullptr}; });
    return inbox_->find(number);
  }

  void expect_letter(int64_t number, int64_t bytes, int64_t mark) {
    const std::span<std::byte> letter = await(number);
    EXPECT_EQ(static_cast<int64_t>(letter.size()), bytes);
    EXPECT_TRUE(std::ranges::all_of(
        letter, [&](std::byte byte) { return byte == static_cast<std::byte>(mark); }));
    inbox_->take(number);
  }

  Communicator comm_ = *world().split(0);
  std::optional<Outbox> outbox_;
  std::optional<Inbox> inbox_;
};

TEST_F(Mail, ArrivesInOrderHoweverFarTheReaderIsBehind) {
  Dice dice(1);
  std::vector<int64_t> sizes;
  int64_t read = 0;
  const auto read_some = [&](int64_t letters) {
    for (; letters > 0; --letters, ++read) expect_letter(inbox_->expect(), sizes[read], read);
  };
  for (int turn = 0; turn < 100; ++turn) {
    for (int64_t more = dice.pick(0, 20); more > 0; --more) {
      const auto mark = static_cast<int64_t>(sizes.size());
      sizes.push_back(dice.chance(0.5) ? 100 : dice.pick(0, 5000));
      write(sizes.back(), mark);
    }
    read_some(dice.pick(0, static_cast<int64_t>(sizes.size()) - read));
  }
  read_some(static_cast<int64_t>(sizes.size()) - read);
}

TEST_F(Mail, MayBeTakenInAnyOrder) {
  for (int64_t round = 0; round < 20; ++round) {
    for (int64_t i = 0; i < 3; ++i) write(64, i);
    const int64_t first = inbox_->expect();
    inbox_->expect(), inbox_->expect();
    for (const int64_t i : {2, 0, 1}) expect_letter(first + i, 64, i);
  }
}

TEST_F(Mail, IsNotThereBeforeItIsPostedNorTakenBeforeItIsRead) {
  const int64_t number = inbox_->expect();
  EXPECT_EQ(inbox_->find(number).data(), nullptr);
  comm_.barrier();
  const int64_t mine = write(8, 1);
  await(number);
  comm_.barrier();  // all have seen theirs, nobody has taken it
  EXPECT_FALSE(outbox_->taken(mine));
  comm_.barrier();
  inbox_->take(number);
  comm_.await([&] { return outbox_->taken(mine); },
              [] { return WaitReason{"letter", 0, 0, nullptr}; });
}

TEST_F(Mail, GivesBackWhatWasEnclosedOnceItIsTaken) {
  SharedMemory& memory = *comm_.context().shared_memory;
  const auto enclose = [&](std::weak_ptr<std::byte>& watched) {
    std::shared_ptr<std::byte> enclosed = memory.allocate(100);
    watched = enclosed;
    return outbox_->post({}, std::move(enclosed));
  };
  std::weak_ptr<std::byte> first, second;
  const int64_t mine = enclose(first);
  EXPECT_FALSE(first.expired());
  expect_letter(inbox_->expect(), 0, 0);
  comm_.await([&] { return outbox_->taken(mine); },
              [] { return WaitReason{"letter", 0, 0, nullptr}; });
  enclose(second);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  expect_letter(inbox_->expect(), 0, 0);
}

TEST_F(Mail, OutlivesItsOutboxUntilItIsRead) {
  write(1000, 42);
  const int64_t number = inbox_->expect();
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    expect_letter(number, 1000, 42);
  });
  outbox_.reset();  // waits
  late.join();
}

}  // namespace
}  // namespace mpi4dl::testing
