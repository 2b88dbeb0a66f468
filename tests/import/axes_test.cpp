// Views: which regroupings of axes there are, and what they are made of.
#include "import/axes.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace mpi4dl {
namespace {

const Shape kMap{6, {4, 5}};

Axes map_axes() {
  return plain_axes(2, kMap);
}

TEST(Axes, PlainOnesAreThoseOfAMapOrAVector) {
  EXPECT_TRUE(are_plain(map_axes(), kMap));
  EXPECT_TRUE(are_plain(plain_axes(2, {6, {}}), {6, {}}));
  Axes permuted = map_axes();
  std::swap(permuted[1], permuted[3]);
  EXPECT_FALSE(are_plain(permuted, kMap));
  EXPECT_TRUE(are_permuted(permuted, kMap));
}

TEST(Axes, RegroupAndBack) {
  const auto flat = regroup(map_axes(), {2, -1}, false);
  ASSERT_TRUE(flat);
  EXPECT_EQ(lengths(*flat), (std::vector<int64_t>{2, 120}));
  const auto back = regroup(*flat, {2, 6, 4, 5}, false);
  ASSERT_TRUE(back);
  EXPECT_TRUE(are_plain(*back, kMap));
}

TEST(Axes, SplitsChannelsAndJoinsThem) {
  auto parts = regroup(map_axes(), {2, 2, 3, 4, 5}, false);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[1][0].step, 3);
  EXPECT_EQ((*parts)[2][0].step, 1);
  const auto joined = regroup(*parts, {2, 6, 4, 5}, false);
  EXPECT_TRUE(are_plain(*joined, kMap));
  std::swap((*parts)[1], (*parts)[2]);
  const auto shuffled = regroup(*parts, {2, 6, 4, 5}, false);
  EXPECT_EQ((*shuffled)[1].size(), 2);
  EXPECT_FALSE(are_plain(*shuffled, kMap));
}

TEST(Axes, RefuseWhatIsNoRegrouping) {
  EXPECT_FALSE(regroup(map_axes(), {2, 6, 21}, false));       // another number of elements
  EXPECT_FALSE(regroup(map_axes(), {2, 6, 2, 2, 5}, false));  // a part of the rows
  EXPECT_FALSE(regroup(map_axes(), {-1, 6, -1, 5}, false));   // two open sizes
  EXPECT_FALSE(regroup(map_axes(), {0, -1}, false));
}

TEST(Axes, TakeSizesOfTheExportedImage) {
  Axes axes = map_axes();
  axes[2][0].exported = 8;
  axes[3][0].exported = 9;
  EXPECT_FALSE(regroup(axes, {2, 6 * 8 * 9}, false));
  const auto flat = regroup(axes, {2, 6 * 8 * 9}, true);
  ASSERT_TRUE(flat);
  EXPECT_EQ(lengths(*flat), (std::vector<int64_t>{2, 120}));
}

}  // namespace
}  // namespace mpi4dl
