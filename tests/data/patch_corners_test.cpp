#include "data/patch_corners.hpp"

#include <gtest/gtest.h>

#include <set>

namespace mpi4dl {
namespace {

using Places = std::vector<std::pair<int64_t, int64_t>>;

Places places(const std::vector<Corner>& corners) {
  Places result;
  for (const Corner& corner : corners) result.emplace_back(corner.row, corner.column);
  return result;
}

TEST(CoveringCorners, LieSideBySide) {
  EXPECT_EQ(places(covering_corners({20, 30}, 10)),
            (Places{{0, 0}, {0, 10}, {0, 20}, {10, 0}, {10, 10}, {10, 20}}));
}

TEST(CoveringCorners, OverlapAtTheEdgeWhereTheyDoNotComeOutEven) {
  EXPECT_EQ(places(covering_corners({12, 10}, 10)), (Places{{0, 0}, {2, 0}}));
}

TEST(RandomCorners, ReachEveryPlaceAndStayInside) {
  Draw draw(7);
  std::set<std::pair<int64_t, int64_t>> reached;
  for (const Corner& corner : random_corners({7, 6}, 5, 200, draw)) {
    EXPECT_TRUE(corner.row >= 0 && corner.row <= 2 && corner.column >= 0 && corner.column <= 1);
    reached.insert({corner.row, corner.column});
  }
  EXPECT_EQ(reached.size(), 6U);
}

}  // namespace
}  // namespace mpi4dl
