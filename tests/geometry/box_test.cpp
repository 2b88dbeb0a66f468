#include "geometry/box.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

using Point = std::pair<int64_t, int64_t>;

std::set<Point> points(const Box& box) {
  std::set<Point> all;
  for (int64_t y = box[0].begin; y < box[0].end; ++y)
    for (int64_t x = box[1].begin; x < box[1].end; ++x) all.emplace(y, x);
  return all;
}

/// Returns all boxes with two axes inside 3x3, empty ones too.
std::vector<Box> small_boxes() {
  std::vector<Box> boxes;
  for (int64_t top = 0; top <= 3; ++top)
    for (int64_t bottom = top; bottom <= 3; ++bottom)
      for (int64_t left = 0; left <= 3; ++left)
        for (int64_t right = left; right <= 3; ++right)
          boxes.push_back({{top, bottom}, {left, right}});
  return boxes;
}

template <typename Check>
void for_all_pairs(Check&& check) {
  for (const Box& a : small_boxes())
    for (const Box& b : small_boxes()) check(a, b);
}

TEST(Box, HasAsManyElementsAsPoints) {
  for (const Box& box : small_boxes()) {
    EXPECT_EQ(box.elements(), static_cast<int64_t>(points(box).size()));
    EXPECT_EQ(box.empty(), points(box).empty());
  }
}

TEST(Box, IntersectionIsWhatBothHave) {
  for_all_pairs([](const Box& a, const Box& b) {
    std::set<Point> both;
    for (const Point& point : points(a))
      if (points(b).contains(point)) both.insert(point);
    EXPECT_EQ(points(intersect(a, b)), both) << to_string(a) << " " << to_string(b);
    EXPECT_EQ(intersect(a, b), intersect(b, a));
  });
}

TEST(Box, ContainsItsSubsetsOnly) {
  for_all_pairs([](const Box& a, const Box& b) {
    EXPECT_EQ(a.contains(b), points(intersect(a, b)) == points(b))
        << to_string(a) << " " << to_string(b);
  });
}

TEST(Box, HullIsTheSmallestThatContainsBoth) {
  for_all_pairs([](const Box& a, const Box& b) {
    const Box around = hull(a, b);
    EXPECT_TRUE(around.contains(a) && around.contains(b));
    for (const Box& other : small_boxes())
      EXPECT_EQ(other.contains(a) && other.contains(b), other.contains(around));
  });
}

TEST(Box, WholeHasTheShapeOfItsTensor) {
  const std::vector<int64_t> image{2, 3, 512, 768};
  const std::vector<int64_t> volume{1, 4, 16, 32, 64};
  for (const auto& shape : {image, volume}) {
    const Box box = Box::whole(shape);
    EXPECT_EQ(box.axes(), static_cast<int>(shape.size()));
    EXPECT_EQ(box.shape(), shape);
    EXPECT_EQ(box, intersect(box, box));
  }
  EXPECT_EQ(Box::whole(volume).elements(), 4 * 16 * 32 * 64);
}

TEST(Box, NoneIsEmptyWhateverItsAxes) {
  for (int axes = 0; axes <= Box::kMaxAxes; ++axes) {
    EXPECT_TRUE(Box::none(axes).empty());
    EXPECT_EQ(Box::none(axes).elements(), 0);
    EXPECT_EQ(Box::none(axes).axes(), axes);
  }
}

TEST(Box, BoxesOfDifferentAxesHaveNothingInCommon) {
  const Box values{{0, 2}, {0, 3}};
  const Box image{{0, 2}, {0, 3}, {0, 4}, {0, 4}};
  EXPECT_TRUE(intersect(values, image).empty());
  EXPECT_FALSE(image.contains(values));
  EXPECT_NE(values, image);
}

TEST(Box, HasAtMostFiveAxes) {
  const std::vector<int64_t> six(6, 1);
  EXPECT_THROW(Box::whole(six), Error);
  EXPECT_THROW(Box::none(6), Error);
  EXPECT_THROW(Box::none(-1), Error);
  EXPECT_THROW((Box{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}), Error);
}

TEST(Box, ReadsLikeItsIntervals) {
  EXPECT_EQ(to_string(Box{{0, 1}, {0, 64}, {0, 512}, {512, 1024}}),
            "[0,1)x[0,64)x[0,512)x[512,1024)");
}

}  // namespace
}  // namespace mpi4dl
