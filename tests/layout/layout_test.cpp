#include "layout/layout.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

std::string complaint(const ParallelOptions& options, int ranks) {
  try {
    const Layout layout(options, ranks);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Layout, OfOneRankNeedsNoFlags) {
  const Layout layout({}, 1);
  EXPECT_EQ(layout.stages(), (std::vector<Grid>{{1, 1, 1}}));
  EXPECT_EQ(layout.roles(0), (std::vector<Role>{{0, 0, 0, 0}}));
}

// The numbers of ranks that MPI4DL's own documents give.
TEST(Layout, CountsRanksAsTheReferenceDoes) {
  EXPECT_EQ(Layout({.split_size = 2, .spatial_parts = {4}}, 5).group_size(), 5);
  EXPECT_EQ(Layout({.split_size = 3, .spatial_size = 2, .spatial_parts = {4}}, 9).group_size(), 9);
  EXPECT_EQ(Layout({.split_size = 3, .spatial_size = 2, .spatial_parts = {4, 2}}, 7).group_size(),
            7);
  EXPECT_EQ(Layout({.split_size = 2, .spatial_parts = {4}, .local_dp = 2}, 6).group_size(), 6);
  EXPECT_EQ(Layout({.split_size = 5, .spatial_size = 1}, 8).group_size(), 8);
}

// What its parser assumes where a script is given no flags.
TEST(Layout, HasTheDefaultsOfEachBenchmark) {
  const auto stages = [](const ParallelOptions& options) { return Layout(options, 0).stages(); };
  const std::vector<Grid> layers{{1, 1, 1}, {1, 1, 1}}, tiles{{1, 2, 2}, {1, 1, 1}};
  EXPECT_EQ(stages({.parallelism = "layer"}), layers);
  EXPECT_EQ(stages({.parallelism = "gems"}), layers);
  EXPECT_EQ(stages({.parallelism = "spatial"}), tiles);
  EXPECT_EQ(stages({.parallelism = "gems-spatial"}), tiles);
  EXPECT_EQ(Layout({.parallelism = "gems", .split_size = 5}, 5).directions(), 2);
  EXPECT_EQ(Layout({.parallelism = "gems-spatial", .split_size = 5}, 8).directions(), 2);
  EXPECT_EQ(Layout({.parallelism = "spatial", .split_size = 3, .spatial_size = 2}, 9).directions(),
            1);
}

// One parser serves all of them, so that flags of tiles arrive at a benchmark that has none.
TEST(Layout, AcceptsFlagsAtTheirDefaultsAndRefusesOthersByNamingTheBenchmark) {
  const auto tiles = [](int spatial_size, std::vector<int> parts, std::string slice) {
    return ParallelOptions{.parallelism = "layer",
                           .spatial_size = spatial_size,
                           .spatial_parts = std::move(parts),
                           .slice_method = std::move(slice)};
  };
  EXPECT_EQ(complaint(tiles(1, {4}, "square"), 2), "");
  for (const ParallelOptions& options :
       {tiles(1, {9}, "square"), tiles(1, {4}, "vertical"), tiles(2, {4}, "square"),
        tiles(1, {4, 4}, "square"), ParallelOptions{.slice_method = "vertical"},
        ParallelOptions{.spatial_size = 0, .spatial_parts = {2}}})
    EXPECT_NE(complaint(options, 2).find("benchmarks/spatial_parallelism"), std::string::npos);
  EXPECT_EQ(complaint({.parallelism = "spatial", .spatial_size = 0}, 2),
            "spatial size 0 leaves parallelism spatial without tiles; the benchmarks in "
            "benchmarks/layer_parallelism have none");
  EXPECT_EQ(complaint({.parallelism = "layer", .gems = true}, 2),
            "GEMS is about two directions, but parallelism layer has one; the benchmarks in "
            "benchmarks/gems_master_model have two");
  EXPECT_NE(complaint({.parallelism = "layer", .stages = "2"}, 2), "");
  EXPECT_NE(complaint({.parallelism = "diagonal"}, 2), "");
}

TEST(Layout, PlacesTilesOfEachStageInARow) {
  const Layout layout({.split_size = 2, .spatial_parts = {4}}, 10);
  EXPECT_EQ(layout.replicas(), 2);
  EXPECT_EQ(layout.roles(3)[0], (Role{0, 0, 0, 3}));
  EXPECT_EQ(layout.roles(4)[0], (Role{0, 0, 1, 0}));
  EXPECT_EQ(layout.roles(5)[0], (Role{1, 0, 0, 0}));
  EXPECT_EQ(layout.stage_ranks(1, 0, 0), (std::vector<int>{5, 6, 7, 8}));
}

TEST(Layout, MirrorsTheSecondDirectionOfGems) {
  const Layout layout({.split_size = 2, .spatial_parts = {4}, .gems = true}, 5);
  EXPECT_EQ(layout.stage_ranks(0, 1, 0), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(layout.stage_ranks(0, 1, 1), (std::vector<int>{0}));
}

TEST(Layout, RolesAndRanksAreInverse) {
  for (const bool gems : {false, true}) {
    const Layout layout({.stages = "2x2,b:2,3,1", .gems = gems}, 20);
    for (int rank = 0; rank < 20; ++rank)
      for (const Role& role : layout.roles(rank)) EXPECT_EQ(layout.rank(role), rank);
  }
}

TEST(Layout, ReadsTheGeneralForm) {
  const Layout layout({.stages = "2x3,4,b:2,b:2x1x2,1"}, 17);
  EXPECT_EQ(layout.stages(),
            (std::vector<Grid>{{1, 2, 3}, {1, 2, 2}, {2, 1, 1}, {2, 1, 2}, {1, 1, 1}}));
}

TEST(Layout, ExplainsAWrongNumberOfRanks) {
  EXPECT_EQ(complaint({.split_size = 2, .spatial_parts = {4}}, 7),
            "2 stages of 4 + 1 ranks need a multiple of 5 ranks, not 7; start with mpirun -np 5");
  EXPECT_EQ(complaint({.split_size = 2, .spatial_parts = {4}}, 4),
            "2 stages of 4 + 1 ranks need a multiple of 5 ranks, not 4; start with mpirun -np 5");
  EXPECT_EQ(
      complaint({.split_size = 12, .spatial_size = 2, .spatial_parts = {4}}, 1),
      "12 stages of 2 x 4 + 10 x 1 ranks need a multiple of 18 ranks, not 1; start with mpirun "
      "-np 18");
}

TEST(Layout, RefusesWhatItCannotRead) {
  EXPECT_NE(complaint({.stages = "2x2,,1"}, 5), "");
  EXPECT_NE(complaint({.stages = "2y2"}, 4), "");
  EXPECT_NE(complaint({.split_size = 1, .spatial_size = 2, .spatial_parts = {4}}, 8), "");
  EXPECT_NE(complaint({.split_size = 3, .spatial_size = 2, .spatial_parts = {4, 2, 1}}, 8), "");
}

}  // namespace
}  // namespace mpi4dl
