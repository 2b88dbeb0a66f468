#include "layout/micro_batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

TEST(MicroBatches, CutABatchInOrder) {
  EXPECT_EQ(micro_batches({.batch = 4, .parts = 2}, 0), (std::vector<MicroBatch>{{0, 1}, {2, 3}}));
}

TEST(MicroBatches, OfUnevenBatchesDifferByOneImage) {
  EXPECT_EQ(micro_batches({.batch = 5, .parts = 3}, 0),
            (std::vector<MicroBatch>{{0}, {1, 2}, {3, 4}}));
}

TEST(MicroBatches, OfReplicasFollowEachOther) {
  const BatchShape shape{.batch = 2, .times = 2, .replicas = 2};
  EXPECT_EQ(micro_batches(shape, 0), (std::vector<MicroBatch>{{0, 1}, {2, 3}}));
  EXPECT_EQ(micro_batches(shape, 1), (std::vector<MicroBatch>{{4, 5}, {6, 7}}));
  EXPECT_EQ(joined_micro_batches(shape), (std::vector<MicroBatch>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(MicroBatches, HoldEveryImageOnce) {
  for (int64_t batch = 1; batch <= 6; ++batch)
    for (int parts = 1; parts <= batch; ++parts)
      for (int times = 1; times <= 3; ++times)
        for (int replicas = 1; replicas <= 3; ++replicas) {
          const BatchShape shape{batch, parts, times, replicas};
          for (const auto& batches : {all_micro_batches(shape), joined_micro_batches(shape)}) {
            std::vector<int64_t> images;
            for (const MicroBatch& one : batches)
              images.insert(images.end(), one.begin(), one.end());
            std::sort(images.begin(), images.end());
            std::vector<int64_t> expected(shape.effective());
            std::iota(expected.begin(), expected.end(), 0);
            EXPECT_EQ(images, expected);
          }
        }
}

TEST(MicroBatches, AreNeverEmpty) {
  EXPECT_THROW(micro_batches({.batch = 2, .parts = 3}, 0), UsageError);
}

}  // namespace
}  // namespace mpi4dl
