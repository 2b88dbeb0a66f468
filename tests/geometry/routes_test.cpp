// Routes are compared pixel by pixel with what they stand for: who owns a pixel, who needs it.
#include "geometry/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "geometry/grid.hpp"

namespace mpi4dl {
namespace {

using Boxes = std::vector<std::vector<Box>>;  // of every rank
using Pixel = std::vector<int64_t>;

struct Case {
  Boxes owned, needed;
  int ranks() const { return static_cast<int>(owned.size()); }
};

template <typename Visit>
void for_each_pixel(const Box& box, Visit&& visit) {
  Pixel pixel(box.axes());
  for (int64_t element = 0; element < box.elements(); ++element) {
    int64_t rest = element;
    for (int axis = box.axes() - 1; axis >= 0; --axis) {
      pixel[axis] = box[axis].begin + rest % box[axis].length();
      rest /= box[axis].length();
    }
    visit(pixel);
  }
}

/// Counts how often each pixel occurs in these boxes.
std::map<Pixel, int> count_pixels(const std::vector<Box>& boxes) {
  std::map<Pixel, int> counts;
  for (const Box& box : boxes) for_each_pixel(box, [&](const Pixel& pixel) { ++counts[pixel]; });
  return counts;
}

/// Returns the pixels that `to` needs and `from` owns, each of them once.
std::map<Pixel, int> due(const Case& c, int from, int to) {
  std::map<Pixel, int> pixels = count_pixels(c.owned[from]);
  const std::map<Pixel, int> needed = count_pixels(c.needed[to]);
  std::erase_if(pixels, [&](const auto& entry) { return !needed.contains(entry.first); });
  return pixels;
}

const Route* route_to(const std::vector<Route>& routes, int peer) {
  const auto found = std::find_if(routes.begin(), routes.end(),
                                  [peer](const Route& route) { return route.peer == peer; });
  return found == routes.end() ? nullptr : &*found;
}

/// Expects one message for each peer at most, none to oneself, none without content.
void expect_well_formed(const std::vector<Route>& routes, int rank) {
  for (size_t i = 0; i < routes.size(); ++i) {
    EXPECT_NE(routes[i].peer, rank);
    EXPECT_GT(routes[i].elements(), 0);
    EXPECT_TRUE(i == 0 || routes[i - 1].peer < routes[i].peer);
  }
}

void expect_each_needed_pixel_arrives_once(const Case& c, const std::vector<Routes>& routes) {
  for (int to = 0; to < c.ranks(); ++to)
    for (int from = 0; from < c.ranks(); ++from) {
      const Route* route = route_to(routes[from].send, to);
      const auto sent = to == from         ? count_pixels(routes[to].local)
                        : route != nullptr ? count_pixels(route->boxes)
                                           : std::map<Pixel, int>{};
      ASSERT_EQ(sent, due(c, from, to)) << "from " << from << " to " << to;
    }
}

/// Expects that one end sends what the other expects: the same boxes in the same order.
void expect_both_ends_agree(const std::vector<Routes>& routes) {
  const int ranks = static_cast<int>(routes.size());
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      const Route* sent = route_to(routes[from].send, to);
      const Route* received = route_to(routes[to].receive, from);
      ASSERT_EQ(sent == nullptr, received == nullptr) << "from " << from << " to " << to;
      ASSERT_TRUE(sent == nullptr || sent->boxes == received->boxes);
    }
}

void expect_right(const Case& c) {
  std::vector<Routes> routes(c.ranks());
  for (int rank = 0; rank < c.ranks(); ++rank) {
    routes[rank] = find_routes(c.owned, c.needed, rank);
    expect_well_formed(routes[rank].send, rank);
    expect_well_formed(routes[rank].receive, rank);
  }
  expect_each_needed_pixel_arrives_once(c, routes);
  expect_both_ends_agree(routes);
}

/// Makes cases where ranks own and need several boxes, some pixels belong to nobody and needs
/// reach beyond the image on all sides.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Case make(int axes) {
    const int ranks = below(5) + 1;
    Box image = Box::none(axes);
    for (int axis = 0; axis < axes; ++axis) image[axis] = {0, axis < 2 ? 2 : 4};
    Case c{Boxes(ranks), Boxes(ranks)};
    for (const Box& piece : pieces(image))
      if (below(5) > 0) c.owned[below(ranks)].push_back(piece);
    Box around = image;
    for (int axis = 2; axis < axes; ++axis) around[axis] = {-1, 5};
    for (auto& boxes : c.needed)
      for (const Box& piece : pieces(around))
        if (below(2) == 0) boxes.push_back(piece);
    return c;
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  /// Returns disjoint boxes that fill `box`: each axis is cut once or not at all.
  std::vector<Box> pieces(const Box& box) {
    std::vector<Box> all{box};
    for (int axis = 0; axis < box.axes(); ++axis) {
      const int64_t cut = box[axis].begin + below(static_cast<int>(box[axis].length()));
      std::vector<Box> halves;
      for (const Box& whole : all)
        for (const Interval& half : {Interval{box[axis].begin, cut}, Interval{cut, box[axis].end}})
          if (!half.empty()) (halves.emplace_back(whole))[axis] = half;
      all = std::move(halves);
    }
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }

  std::mt19937 random_;
};

TEST(Routes, CarryEachNeededPixelOnceOnRandomImages) {
  Generator random(1);
  for (int i = 0; i < 60; ++i) expect_right(random.make(/*axes=*/4));
}

TEST(Routes, CarryEachNeededPixelOnceOnRandomVolumes) {
  Generator random(2);
  for (int i = 0; i < 20; ++i) expect_right(random.make(/*axes=*/5));
}

/// Makes a case in which everybody owns a tile of the image and needs it with a margin, padding
/// included.
Case halo_case(const Grid& grid, const std::vector<int64_t>& shape, int64_t margin) {
  Case c{Boxes(grid.size()), Boxes(grid.size())};
  for (int rank = 0; rank < grid.size(); ++rank) {
    Box box = grid.owned(shape, rank);
    c.owned[rank].push_back(box);
    for (const int axis : {box.axes() - 2, box.axes() - 1})
      box[axis] = {box[axis].begin - margin, box[axis].end + margin};
    c.needed[rank].push_back(box);
  }
  return c;
}

TEST(Routes, FillHalosOfAnyWidth) {
  for (const Grid& grid : {Grid{1, 2, 2}, Grid{1, 3, 3}, Grid{1, 1, 5}, Grid{2, 2, 1}})
    for (const int64_t margin : {0, 1, 3, 9}) {
      expect_right(halo_case(grid, {2, 1, 7, 8}, margin));
      expect_right(halo_case(grid, {2, 1, 2, 7, 8}, margin));
    }
}

TEST(Routes, OfATileTalkToItsNeighboursOnly) {
  const Case c = halo_case({.rows = 3, .cols = 3}, {1, 1, 9, 9}, /*margin=*/1);
  EXPECT_EQ(find_routes(c.owned, c.needed, 4).send.size(), 8U);
  EXPECT_EQ(find_routes(c.owned, c.needed, 0).send.size(), 3U);
}

TEST(Routes, JoinManyTilesOnOneRank) {
  Case c = halo_case({.rows = 2, .cols = 2}, {1, 2, 5, 5}, /*margin=*/0);
  const std::vector<int64_t> shape{1, 2, 5, 5};
  c.needed = {{}, {}, {}, {Box::whole(shape)}};
  expect_right(c);
  EXPECT_EQ(find_routes(c.owned, c.needed, 3).receive.size(), 3U);
  EXPECT_TRUE(find_routes(c.owned, c.needed, 3).send.empty());
}

TEST(Routes, NobodySpeaksWhereNothingIsNeeded) {
  Case c = halo_case({.rows = 2, .cols = 2}, {1, 1, 4, 4}, /*margin=*/1);
  c.needed = Boxes(4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(find_routes(c.owned, c.needed, rank), Routes{});
}

}  // namespace
}  // namespace mpi4dl
