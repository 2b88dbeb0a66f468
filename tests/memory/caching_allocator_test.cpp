#include "memory/caching_allocator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/context.hpp"
#include "comm/node/resident_bytes.hpp"
#include "memory/memory_meter.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(BlockPool, BlocksNeverOverlapAndFreeOnesJoin) {
  Dice dice(1);
  BlockPool pool;
  std::map<int64_t, int64_t> blocks;  // offset -> bytes
  for (int i = 0; i < 20000; ++i) {
    if (blocks.size() < 100 && dice.chance(0.55)) {
      const int64_t bytes = dice.pick(1, dice.chance(0.1) ? 50 * kMiB : kMiB);
      const BlockPool::Block block = pool.allocate(bytes);
      ASSERT_GE(block.bytes, bytes);
      ASSERT_LE(block.bytes, bytes + std::max<int64_t>(4096, bytes / 8));
      const auto next = blocks.lower_bound(block.offset);
      ASSERT_TRUE(next == blocks.end() || block.offset + block.bytes <= next->first);
      if (next != blocks.begin()) {
        const auto before = std::prev(next);
        ASSERT_LE(before->first + before->second, block.offset);
      }
      blocks[block.offset] = block.bytes;
    } else if (!blocks.empty()) {
      const auto chosen =
          std::next(blocks.begin(), dice.pick(0, static_cast<int>(blocks.size()) - 1));
      ASSERT_EQ(pool.release(chosen->first), chosen->second);
      blocks.erase(chosen);
    }
  }
  for (const auto& [offset, bytes] : blocks) pool.release(offset);
  EXPECT_EQ(pool.used(), 0);
  ASSERT_EQ(pool.free_blocks().size(), 1);
  EXPECT_EQ(pool.free_blocks()[0].bytes, pool.end());
}

/// A step that is repeated needs no more memory than the first one.
TEST(BlockPool, RepeatedStepsDoNotGrow) {
  BlockPool pool;
  int64_t after_first = 0;
  for (int step = 0; step < 50; ++step) {
    Dice dice(7);
    std::vector<int64_t> live;
    for (int i = 0; i < 300; ++i) {
      if (live.empty() || dice.chance(0.6)) {
        live.push_back(pool.allocate(dice.pick(1, 20 * kMiB)).offset);
      } else {
        const auto chosen = live.begin() + dice.pick(0, static_cast<int>(live.size()) - 1);
        pool.release(*chosen);
        live.erase(chosen);
      }
    }
    for (const int64_t offset : live) pool.release(offset);
    if (step == 0) after_first = pool.end();
  }
  EXPECT_EQ(pool.end(), after_first);
}

class Caching : public ::testing::Test {
 protected:
  void SetUp() override { use_allocator(CpuAllocator::caching); }
  void TearDown() override {
    use_allocator(CpuAllocator::system);
    CachingAllocator::instance().set_limit(int64_t{1} << 50);
    CachingAllocator::instance().give_back();
  }
  CachingAllocator& allocator_ = CachingAllocator::instance();
};

TEST_F(Caching, GivesFreedMemoryOutAgain) {
  const void* first = at::empty({3 * kMiB}, at::kByte).data_ptr();
  EXPECT_EQ(at::empty({3 * kMiB}, at::kByte).data_ptr(), first);
}

TEST_F(Caching, CountsWhatTensorsAskFor) {
  const AllocatorStatistics before = allocator_.statistics();
  const MemoryMeter meter;
  {
    const at::Tensor large = at::zeros({5 * kMiB + 3}, at::kByte),
                     small = at::zeros({100}, at::kByte);
    EXPECT_EQ(allocator_.statistics().live, before.live + 5 * kMiB + 3);
    EXPECT_EQ(meter.live_bytes(), 5 * kMiB + 3 + 100);
  }
  EXPECT_EQ(allocator_.statistics().live, before.live);
  EXPECT_GE(allocator_.statistics().peak, before.live + 5 * kMiB + 3);
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST_F(Caching, GivesMemoryBackToTheSystem) {
  {
    const at::Tensor tensor = at::ones({200 * kMiB}, at::kByte);
  }
  const int64_t before = resident_bytes(CommContext());
  EXPECT_GE(allocator_.statistics().resident, 200 * kMiB);
  allocator_.give_back();
  EXPECT_LE(resident_bytes(CommContext()), before - 190 * kMiB);
  EXPECT_EQ(allocator_.statistics().resident, allocator_.statistics().live);
  const at::Tensor again = at::ones({200 * kMiB}, at::kByte);
  EXPECT_GE(allocator_.statistics().resident, 200 * kMiB);
  EXPECT_EQ(again.min().item<int>(), 1);
}

/// Blocks of many sizes are freed and never asked for again: the limit holds all the same.
TEST_F(Caching, KeepsToItsLimit) {
  allocator_.give_back();
  allocator_.set_limit(allocator_.statistics().live + 64 * kMiB);
  const int64_t limit = allocator_.statistics().live + 64 * kMiB;
  std::vector<at::Tensor> live;
  for (int64_t i = 1; i < 40; ++i) {
    const at::Tensor hole = at::ones({i * kMiB}, at::kByte);
    live.push_back(at::ones({kMiB}, at::kByte));  // between the holes
    EXPECT_LE(allocator_.statistics().resident, limit + 2 * i * kMiB);
  }
}

TEST_F(Caching, TensorsOutliveASwitchAndOtherThreadsFreeThem) {
  at::Tensor cached = at::ones({4 * kMiB}, at::kByte);
  use_allocator(CpuAllocator::system);
  const at::Tensor plain = at::ones({4 * kMiB}, at::kByte);
  use_allocator(CpuAllocator::caching);
  const int64_t live = allocator_.statistics().live;
  std::thread([&] { cached.reset(); }).join();
  EXPECT_EQ(allocator_.statistics().live, live - 4 * kMiB);
  EXPECT_EQ(plain.min().item<int>(), 1);
}

TEST_F(Caching, RawMemoryIsFreedByItsDeleter) {
  const int64_t live = allocator_.statistics().live;
  for (const size_t bytes : {100, 1 << 20})
    allocator_.raw_deallocate(allocator_.raw_allocate(bytes));
  EXPECT_EQ(allocator_.statistics().live, live);
}

}  // namespace
}  // namespace mpi4dl::testing
