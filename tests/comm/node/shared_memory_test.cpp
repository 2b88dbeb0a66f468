#include "comm/node/shared_memory.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "comm/collectives.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

class Shared : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!memory_) GTEST_SKIP() << "this system does not let ranks map each other's memory";
  }

  at::Tensor empty(const std::vector<int64_t>& shape, c10::ScalarType type = at::kFloat,
                   c10::MemoryFormat format = c10::MemoryFormat::Contiguous) const {
    return memory_->empty(shape, type, format);
  }

  std::shared_ptr<SharedMemory> memory_ = world().context().shared_memory;
};

TEST_F(Shared, TensorsAreReadableByEveryRank) {
  const at::Tensor mine = empty({1000}, at::kLong).fill_(world().rank());
  const std::vector<int64_t> offsets = all_gather(*memory_->offset_of(mine), world());
  for (int peer = 0; peer < world().size(); ++peer) {
    ASSERT_TRUE(memory_->reaches(peer));
    std::array<int64_t, 1000> theirs{};
    std::memcpy(theirs.data(), memory_->address(peer, offsets[peer]), sizeof(theirs));
    for (const int64_t value : theirs) ASSERT_EQ(value, peer);
  }
  barrier(world());  // until everybody has read
}

TEST_F(Shared, ReadersSeeLaterWritesToo) {
  const at::Tensor mine = empty({1}, at::kLong).fill_(-1);
  const std::vector<int64_t> offsets = all_gather(*memory_->offset_of(mine), world());
  for (int64_t step = 0; step < 3; ++step) {
    mine.fill_(step);
    barrier(world());
    for (int peer = 0; peer < world().size(); ++peer) {
      int64_t seen = -1;
      std::memcpy(&seen, memory_->address(peer, offsets[peer]), sizeof(seen));
      EXPECT_EQ(seen, step);
    }
    barrier(world());
  }
}

/// Measures how long a sleep by the doorbell takes.
double sleep_by(Doorbell& bell, std::chrono::microseconds at_most) {
  const auto start = std::chrono::steady_clock::now();
  bell.sleep(at_most);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(Shared, WhoWaitsForAWordIsWokenByWhoWritesIt) {
  using namespace std::chrono_literals;
  const at::Tensor mine = empty({1}, at::kLong).fill_(0);
  std::atomic_ref<int64_t> word(*mine.data_ptr<int64_t>());
  const std::vector<int64_t> offsets = all_gather(*memory_->offset_of(mine), world());
  if (world().rank() == 0) {
    if (world().size() == 1) word.store(1);
    double longest = 0;
    for (Doorbell& bell = memory_->doorbell();;) {
      bell.listen();
      if (word.load() == 1) break;
      longest = std::max(longest, sleep_by(bell, 60s));
    }
    EXPECT_LT(longest, 30);
  }
  if (world().rank() == world().size() - 1 && world().rank() > 0) {
    std::this_thread::sleep_for(20ms);
    auto* theirs = reinterpret_cast<int64_t*>(memory_->address(0, offsets[0]));
    std::atomic_ref<int64_t>(*theirs).store(1);
    memory_->ring(0);
  }
  barrier(world());
}

TEST_F(Shared, ARingBeforeTheSleepIsNotMissed) {
  using namespace std::chrono_literals;
  Doorbell& bell = memory_->doorbell();
  bell.listen();
  memory_->ring(world().rank());
  EXPECT_LT(sleep_by(bell, 60s), 30);
}

TEST_F(Shared, NobodyRingsAndTheSleepEndsByItself) {
  using namespace std::chrono_literals;
  barrier(world());
  Doorbell& bell = memory_->doorbell();
  bell.listen();
  EXPECT_GE(sleep_by(bell, 20ms), 0.02);
}

TEST_F(Shared, NobodyIsReachedOutsideTheWorld) {
  EXPECT_FALSE(memory_->reaches(world().size()));
}

TEST_F(Shared, OrdinaryTensorsLieElsewhere) {
  EXPECT_FALSE(memory_->offset_of(at::zeros({1000})).has_value());
}

TEST_F(Shared, OffsetsOfViewsPointAtTheirFirstElement) {
  const at::Tensor whole = empty({10, 10}, at::kDouble);
  EXPECT_EQ(*memory_->offset_of(whole[3]), *memory_->offset_of(whole) + int64_t{3} * 10 * 8);
}

TEST_F(Shared, TensorsHaveTheFormatAskedFor) {
  const at::Tensor image = empty({2, 3, 4, 5}, at::kDouble, c10::MemoryFormat::ChannelsLast);
  EXPECT_EQ(image.sizes(), (at::IntArrayRef{2, 3, 4, 5}));
  EXPECT_EQ(image.scalar_type(), at::kDouble);
  EXPECT_TRUE(image.is_contiguous(c10::MemoryFormat::ChannelsLast));
  const at::Tensor volume = empty({2, 3, 4, 5, 6}, at::kFloat, c10::MemoryFormat::ChannelsLast3d);
  EXPECT_TRUE(volume.is_contiguous(c10::MemoryFormat::ChannelsLast3d));
  EXPECT_EQ(empty({0, 3}).numel(), 0);
}

TEST_F(Shared, LivingTensorsDoNotOverlap) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back(empty({1 + 700 * i}, at::kLong).fill_(i));
  tensors.erase(tensors.begin() + 5, tensors.begin() + 10);
  for (int i = 5; i < 10; ++i)
    tensors.insert(tensors.begin() + i, empty({1 + 700 * i}, at::kLong).fill_(i));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(tensors[i].eq(i).all().item<bool>()) << i;
}

TEST_F(Shared, FreedBlocksAreGivenOutAgain) {
  int64_t first = 0;
  {
    const at::Tensor freed = empty({100000});
    first = *memory_->offset_of(freed);
  }
  const int64_t reserved = memory_->reserved_bytes();
  const at::Tensor again = empty({100000});
  EXPECT_EQ(*memory_->offset_of(again), first);
  EXPECT_EQ(memory_->reserved_bytes(), reserved);
}

TEST_F(Shared, ViewsKeepTheirBlock) {
  at::Tensor view = empty({100000}).fill_(1)[7];
  const at::Tensor other = empty({100000}).fill_(2);
  EXPECT_EQ(view.item<float>(), 1);
}

/// A training step that allocates as the last one did needs no more memory.
TEST_F(Shared, ARepeatedStepReservesNothingNew) {
  const auto step = [this] {
    std::vector<at::Tensor> live;
    for (const int64_t elements : {5000, 70000, 5200, 64000, 300, 5000}) {
      live.push_back(empty({elements}));
      if (live.size() > 3) live.erase(live.begin() + 1);
    }
  };
  step();
  const int64_t reserved = memory_->reserved_bytes();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(memory_->reserved_bytes(), reserved);
}

TEST(SharedMemory, IsNotReachedByRanksOfAnotherNode) {
  // A node of one rank stands for a node that the others are not on.
  const Communicator alone = *world().split(world().rank());
  const std::shared_ptr<SharedMemory> memory = SharedMemory::create(alone);
  if (!memory) GTEST_SKIP() << "this system has no shared memory";
  for (int peer = 0; peer < world().size(); ++peer)
    EXPECT_EQ(memory->reaches(peer), peer == world().rank());
}

TEST(SharedMemory, TensorsOutliveIt) {
  const Communicator alone = *world().split(world().rank());
  std::shared_ptr<SharedMemory> memory = SharedMemory::create(alone);
  if (!memory) GTEST_SKIP() << "this system has no shared memory";
  const std::vector<int64_t> shape{1000};
  const at::Tensor kept = memory->empty(shape, at::kLong, c10::MemoryFormat::Contiguous).fill_(5);
  memory.reset();
  EXPECT_TRUE(kept.eq(5).all().item<bool>());
}

}  // namespace
}  // namespace mpi4dl::testing
