#include "geometry/grid.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Counts the grid's ranks that own each element of a tensor, in row-major order.
std::vector<int> owners_of_each_element(const Grid& grid, const std::vector<int64_t>& shape) {
  std::vector<int> owners(Box::whole(shape).elements(), 0);
  for (int rank = 0; rank < grid.size(); ++rank) {
    const Box box = grid.owned(shape, rank);
    for (size_t element = 0; element < owners.size(); ++element) {
      Box point = Box::none(static_cast<int>(shape.size()));
      int64_t rest = static_cast<int64_t>(element);
      for (int axis = point.axes() - 1; axis >= 0; --axis) {
        point[axis] = {rest % shape[axis], rest % shape[axis] + 1};
        rest /= shape[axis];
      }
      if (box.contains(point)) ++owners[element];
    }
  }
  return owners;
}

void expect_each_element_has_one_owner(const Grid& grid, const std::vector<int64_t>& shape) {
  for (const int owners : owners_of_each_element(grid, shape))
    ASSERT_EQ(owners, 1) << to_string(grid) << " over " << to_string(Box::whole(shape));
}

/// Expects that lengths of what the ranks own along an axis differ by at most one.
void expect_balanced(const Grid& grid, const std::vector<int64_t>& shape) {
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    int64_t least = shape[axis], most = 0;
    for (int rank = 0; rank < grid.size(); ++rank) {
      least = std::min(least, grid.owned(shape, rank)[axis].length());
      most = std::max(most, grid.owned(shape, rank)[axis].length());
    }
    EXPECT_LE(most - least, 1) << to_string(grid) << " axis " << axis << " of " << shape[axis];
  }
}

TEST(Grid, OwnershipIsBalancedForAnyLengthAndNumberOfParts) {
  for (int64_t length = 0; length <= 40; ++length)
    for (int parts = 1; parts <= 12; ++parts)
      for (const Grid& grid : {Grid{.batch = parts}, Grid{.rows = parts}, Grid{.cols = parts}}) {
        const std::vector<int64_t> shape{grid.batch > 1 ? length : 1, 1, grid.rows > 1 ? length : 1,
                                         grid.cols > 1 ? length : 1};
        expect_each_element_has_one_owner(grid, shape);
        expect_balanced(grid, shape);
      }
}

TEST(Grid, EachElementHasOneOwnerOnEveryGrid) {
  for (int batch = 1; batch <= 2; ++batch)
    for (int rows = 1; rows <= 4; ++rows)
      for (int cols = 1; cols <= 4; ++cols) {
        const Grid grid{batch, rows, cols};
        expect_each_element_has_one_owner(grid, {3, 2, 5, 7});
        expect_each_element_has_one_owner(grid, {2, 2, 3, 4, 5});
        expect_each_element_has_one_owner(grid, {3, 4});
      }
}

TEST(Grid, CutsBatchRowsAndColumnsOnly) {
  const std::vector<int64_t> volume{2, 3, 8, 10, 12};
  for (int rank = 0; rank < 12; ++rank) {
    const Box box = Grid{2, 2, 3}.owned(volume, rank);
    EXPECT_EQ(box.shape(), (std::vector<int64_t>{1, 3, 8, 5, 4}));
  }
}

TEST(Grid, OwnsWhatThePictureShows) {
  const std::vector<int64_t> image{1, 1, 4, 6};
  const Grid grid{.rows = 2, .cols = 2};
  EXPECT_EQ(grid.owned(image, 1), (Box{{0, 1}, {0, 1}, {0, 2}, {3, 6}}));
  EXPECT_EQ(grid.owned(image, 2), (Box{{0, 1}, {0, 1}, {2, 4}, {0, 3}}));
}

TEST(Grid, ValuesWithoutSpatialExtentBelongToTheFirstTileOfEachBatchPart) {
  const std::vector<int64_t> values{4, 10};
  const Grid grid{.batch = 2, .rows = 1, .cols = 2};
  EXPECT_EQ(grid.owned(values, 0), (Box{{0, 2}, {0, 10}}));
  EXPECT_TRUE(grid.owned(values, 1).empty());
  EXPECT_EQ(grid.owned(values, 2), (Box{{2, 4}, {0, 10}}));
  EXPECT_TRUE(grid.owned(values, 3).empty());
}

TEST(Grid, RanksAndPlacesCorrespond) {
  const Grid grid{2, 3, 4};
  int rank = 0;
  for (int batch = 0; batch < 2; ++batch)
    for (int row = 0; row < 3; ++row)
      for (int col = 0; col < 4; ++col, ++rank) {
        EXPECT_EQ(grid.place(rank), (Place{batch, row, col}));
        EXPECT_EQ(grid.rank({batch, row, col}), rank);
      }
  EXPECT_EQ(rank, grid.size());
}

TEST(Grid, ReadsLikeItsFactors) {
  EXPECT_EQ(to_string(Grid{.rows = 2, .cols = 3}), "2x3");
  EXPECT_EQ(to_string(Grid{.batch = 2}), "2x1x1");
}

TEST(Slice, SquareIsTheMostSquareFactorisation) {
  for (int parts = 1; parts <= 100; ++parts) {
    const Grid grid = make_grid("square", parts);
    ASSERT_EQ(grid.size(), parts);
    EXPECT_LE(grid.rows, grid.cols);
    for (int rows = 1; rows <= parts; ++rows)
      if (parts % rows == 0) {
        EXPECT_LE(grid.cols - grid.rows, std::abs(parts / rows - rows));
      }
  }
}

TEST(Slice, StripsGoOneWay) {
  for (int parts = 1; parts <= 12; ++parts) {
    EXPECT_EQ(make_grid("vertical", parts), (Grid{.rows = 1, .cols = parts}));
    EXPECT_EQ(make_grid("horizontal", parts), (Grid{.rows = parts, .cols = 1}));
  }
}

TEST(Slice, ExplicitGridsAreTakenAsGiven) {
  EXPECT_EQ(make_grid("3x2", 6), (Grid{.rows = 3, .cols = 2}));
  EXPECT_EQ(make_grid("1x12", 12), (Grid{.rows = 1, .cols = 12}));
}

/// Returns the sentence that a user reads after asking for these tiles.
std::string complaint(const std::string& method, int parts) {
  try {
    make_grid(method, parts);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Slice, RejectsWhatIsNoMethod) {
  for (const std::string method :
       {"diagonal", "", "x", "2x", "x2", "2x2x1", "2 x 2", "-2x-2", "0x4", "2x2 ", "Square"})
    EXPECT_NE(complaint(method, 4).find("unknown slice method '" + method + "'"), std::string::npos)
        << method;
}

TEST(Slice, RejectsGridsOfAnotherSize) {
  EXPECT_EQ(complaint("2x3", 4),
            "slice method 2x3 makes 6 tiles, but 4 spatial parts were asked for");
}

TEST(Slice, RejectsLessThanOnePart) {
  for (const char* method : {"square", "vertical", "horizontal", "0x0"})
    for (const int parts : {0, -4}) EXPECT_NE(complaint(method, parts), "");
}

}  // namespace
}  // namespace mpi4dl
