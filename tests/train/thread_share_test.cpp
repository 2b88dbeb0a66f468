#include "train/thread_share.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <sched.h>

#include <cstdlib>
#include <numeric>

#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

double at_once(const Layout& layout, ScheduleKind kind, int micro_batches, int rank) {
  const PipelineShape shape{static_cast<int>(layout.stages().size()), micro_batches, 2};
  std::vector<Schedule> schedules;
  for (int r = 0; r < layout.group_size(); ++r)
    schedules.push_back(make_schedule(kind, shape, layout.roles(r)[0].stage));
  std::vector<int> ranks(layout.group_size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks_at_once(simulate(layout, schedules, std::vector<StageCost>(shape.stages)), rank,
                       ranks);
}

TEST(ThreadShare, TilesComputeTogetherAndTheLastStageAlone) {
  const Layout layout(5, {Grid{.rows = 2, .cols = 2}, Grid{}});
  for (int tile = 0; tile < 4; ++tile)
    EXPECT_DOUBLE_EQ(at_once(layout, ScheduleKind::gpipe, 1, tile), 4);
  EXPECT_DOUBLE_EQ(at_once(layout, ScheduleKind::gpipe, 1, 4), 1);
}

TEST(ThreadShare, StagesWithoutMicroBatchesTakeTurns) {
  const Layout layout(3, std::vector<Grid>(3));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_DOUBLE_EQ(at_once(layout, ScheduleKind::gpipe, 1, rank), 1);
}

TEST(ThreadShare, MicroBatchesKeepStagesBusyTogether) {
  const Layout layout(3, std::vector<Grid>(3));
  EXPECT_GT(at_once(layout, ScheduleKind::one_f_one_b, 8, 1), 2.5);
}

/// With OMP_NUM_THREADS, as in every test, nothing else counts.
TEST(ThreadShare, IsWhatTheUserSays) {
  ASSERT_NE(std::getenv("OMP_NUM_THREADS"), nullptr);
  const Layout layout(world().size(), std::vector<Grid>(world().size()));
  const Schedule mine = gpipe({world().size(), 1}, world().rank());
  const std::vector<StageCost> costs(world().size());
  EXPECT_EQ(share_of_threads(layout, mine, costs, world()), at::get_num_threads());
}

TEST(ThreadShare, IsAllCoresWhereRanksTakeTurns) {
  const std::string before = std::getenv("OMP_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  const Layout layout(world().size(), std::vector<Grid>(world().size()));
  const std::vector<StageCost> costs(world().size());
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  EXPECT_EQ(share_of_threads(layout, gpipe({world().size(), 1}, world().rank()), costs, world()),
            CPU_COUNT(&mask));
  setenv("OMP_NUM_THREADS", before.c_str(), 1);
}

}  // namespace
}  // namespace mpi4dl::testing
