#include "geometry/interval.hpp"

#include <gtest/gtest.h>

#include <set>

namespace mpi4dl {
namespace {

constexpr int64_t kEnd = 6;

std::set<int64_t> points(const Interval& interval) {
  std::set<int64_t> all;
  for (int64_t i = interval.begin; i < interval.end; ++i) all.insert(i);
  return all;
}

/// Checks every pair of intervals inside [0, kEnd), empty and reversed ones too.
template <typename Check>
void for_all_pairs(Check&& check) {
  for (int64_t a = 0; a < kEnd; ++a)
    for (int64_t b = 0; b < kEnd; ++b)
      for (int64_t c = 0; c < kEnd; ++c)
        for (int64_t d = 0; d < kEnd; ++d) check(Interval{a, b}, Interval{c, d});
}

TEST(Interval, IsTheSetOfItsPoints) {
  for (int64_t begin = 0; begin < kEnd; ++begin)
    for (int64_t end = 0; end < kEnd; ++end) {
      const Interval interval{begin, end};
      EXPECT_EQ(interval.length(), static_cast<int64_t>(points(interval).size()));
      EXPECT_EQ(interval.empty(), points(interval).empty());
    }
}

TEST(Interval, ContainsItsSubsetsOnly) {
  for_all_pairs([](const Interval& a, const Interval& b) {
    const std::set<int64_t> in_a = points(a);
    bool subset = true;
    for (const int64_t point : points(b)) subset = subset && in_a.contains(point);
    EXPECT_EQ(a.contains(b), subset) << a.begin << "," << a.end << " " << b.begin << "," << b.end;
  });
}

TEST(Interval, IntersectionIsWhatBothHave) {
  for_all_pairs([](const Interval& a, const Interval& b) {
    std::set<int64_t> both;
    for (const int64_t point : points(a))
      if (points(b).contains(point)) both.insert(point);
    EXPECT_EQ(points(intersect(a, b)), both);
    EXPECT_EQ(intersect(a, b), intersect(b, a));
  });
}

TEST(Interval, EmptyIntersectionsCompareEqual) {
  EXPECT_EQ(intersect(Interval{0, 3}, Interval{3, 5}), intersect(Interval{4, 5}, Interval{1, 2}));
}

TEST(Interval, HullIsTheSmallestThatContainsBoth) {
  for_all_pairs([](const Interval& a, const Interval& b) {
    std::set<int64_t> either = points(a);
    either.merge(points(b));
    const Interval around = hull(a, b);
    ASSERT_EQ(around.empty(), either.empty());
    if (either.empty()) return;
    EXPECT_EQ(around.begin, *either.begin());
    EXPECT_EQ(around.end, *either.rbegin() + 1);
  });
}

TEST(Interval, PartsAreBalancedDisjointAndCovering) {
  for (int64_t length = 0; length <= 40; ++length)
    for (int64_t parts = 1; parts <= 12; ++parts) {
      int64_t next = 0;
      for (int64_t index = 0; index < parts; ++index) {
        const Interval piece = part(length, index, parts);
        EXPECT_EQ(piece.begin, next) << length << " in " << parts;
        EXPECT_GE(piece.length(), length / parts);
        EXPECT_LE(piece.length(), (length + parts - 1) / parts);
        next = piece.end;
      }
      EXPECT_EQ(next, length);
    }
}

}  // namespace
}  // namespace mpi4dl
