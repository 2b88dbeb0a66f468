#include "simulate/schedule.hpp"

#include <gtest/gtest.h>

#include "simulate/simulator.hpp"

namespace mpi4dl {
namespace {

Layout pipeline(int stages) {
  return Layout({.split_size = stages, .spatial_size = 0}, stages);
}

using Kind = Schedule (*)(const PipelineShape&, int);

Simulation simulate_pipeline(const Layout& layout, Kind kind, int micro_batches) {
  const PipelineShape shape{static_cast<int>(layout.stages().size()), micro_batches};
  std::vector<Schedule> by_rank;
  for (int rank = 0; rank < layout.group_size(); ++rank)
    by_rank.push_back(kind(shape, layout.roles(rank)[0].stage));
  return simulate(layout, by_rank, std::vector<StageCost>(shape.stages));
}

TEST(Schedule, GpipeRunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(to_string(gpipe({.stages = 3, .micro_batches = 2}, 1)), "F0 F1 B0 B1");
}

TEST(Schedule, OneForwardOneBackwardFillsThenAlternates) {
  const PipelineShape shape{.stages = 3, .micro_batches = 4};
  EXPECT_EQ(to_string(one_f_one_b(shape, 0)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(to_string(one_f_one_b(shape, 1)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(to_string(one_f_one_b(shape, 2)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, GemsAlternatesDirections) {
  EXPECT_EQ(to_string(gems(/*times=*/3, /*micro_batches=*/1)), "F0 B0 F1' B1' F2 B2");
  EXPECT_EQ(to_string(gems(/*times=*/2, /*micro_batches=*/2)), "F0 F1 B0 B1 F2' F3' B2' B3'");
}

TEST(Simulator, EveryPipelineIsCompleteAndFreeOfDeadlock) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int batches = 1; batches <= 9; ++batches)
      for (const Kind kind : {Kind{gpipe}, Kind{one_f_one_b}}) {
        const Simulation simulated = simulate_pipeline(pipeline(stages), kind, batches);
        EXPECT_TRUE(simulated.complete)
            << stages << " stages, " << batches << ": " << simulated.stuck;
        // Equal stages: the known time of a filled pipeline, forward 1 and backward 2.
        EXPECT_DOUBLE_EQ(simulated.duration, 3.0 * (batches + stages - 1));
      }
}

TEST(Simulator, OneForwardOneBackwardKeepsFewerBatchesAlive) {
  const Simulation all = simulate_pipeline(pipeline(4), gpipe, 8);
  const Simulation few = simulate_pipeline(pipeline(4), one_f_one_b, 8);
  EXPECT_EQ(all.peak_live, (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(few.peak_live, (std::vector<int>{4, 3, 2, 1}));
  EXPECT_DOUBLE_EQ(all.bubble, few.bubble);
}

Simulation simulate_gems(const std::string& stages, int ranks, int times) {
  const Layout layout({.stages = stages, .gems = true}, ranks);
  const std::vector<Schedule> by_rank(ranks, gems(times, /*micro_batches=*/1));
  return simulate(layout, by_rank, std::vector<StageCost>(layout.stages().size()));
}

TEST(Simulator, GemsKeepsTheActivationsOfOneReplicaAlive) {
  for (const auto& [stages, ranks] : std::vector<std::pair<std::string, int>>{{"1,1", 2},
                                                                              {"1,1,1", 3},
                                                                              {"1,1,1,1", 4},
                                                                              {"2x2,1", 5},
                                                                              {"2x2,2x1,1", 7},
                                                                              {"3,b:2,1", 6}}) {
    const Simulation simulated = simulate_gems(stages, ranks, /*times=*/4);
    EXPECT_TRUE(simulated.complete) << stages << ": " << simulated.stuck;
    EXPECT_EQ(simulated.peak_live, std::vector<int>(ranks, 1)) << stages;
  }
}

TEST(Simulator, GemsOverlapsOneDirectionsBackwardWithTheOthersForward) {
  const double one_after_the_other = 4 * 3.0 * 4;
  EXPECT_LT(simulate_gems("1,1,1,1", 4, /*times=*/4).duration, one_after_the_other);
}

TEST(Simulator, SaysWhoIsStuck) {
  const Layout layout = pipeline(2);
  // Rank 1 wants the second micro-batch back before it has gone forward.
  const std::vector<Schedule> by_rank{
      gpipe({2, 2}, 0), {{Action::Kind::backward, 1, 0}, {Action::Kind::forward, 0, 0}}};
  const Simulation simulated = simulate(layout, by_rank, std::vector<StageCost>(2));
  EXPECT_FALSE(simulated.complete);
  EXPECT_EQ(simulated.stuck, "rank 0 waits to start B0 of stage 0");
}

TEST(Simulator, NoticesAMicroBatchThatIsForgotten) {
  const Layout layout = pipeline(2);
  const std::vector<Schedule> by_rank{gpipe({2, 2}, 0), gpipe({2, 1}, 1)};
  EXPECT_FALSE(simulate(layout, by_rank, std::vector<StageCost>(2)).complete);
}

TEST(Simulator, PrintsAGrid) {
  const Simulation simulated = simulate_pipeline(pipeline(2), gpipe, 1);
  EXPECT_EQ(to_grid(simulated, 2),
            "rank 0 | F0   .    .    .    B0   B0  \n"
            "rank 1 | .    F0   B0   B0   .    .   \n");
}

TEST(Simulator, DrawsNeighboursThatDoTheSameInOneRow) {
  const Layout layout({.stages = "3x4,1"}, 13);
  EXPECT_EQ(to_grid(simulate_pipeline(layout, gpipe, 1), 13),
            "ranks 0-11 | F0   .    .    .    B0   B0  \n"
            "rank 12    | .    F0   B0   B0   .    .   \n");
}

}  // namespace
}  // namespace mpi4dl
