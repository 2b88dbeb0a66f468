#include "simulate/fastest_balance.hpp"

#include <gtest/gtest.h>

#include "models/registry.hpp"
#include "simulate/simulator.hpp"
#include "support/balances.hpp"

namespace mpi4dl {
namespace {

using testing::convolutions, testing::sizes, testing::small_resnet;

double step_time(const Graph& graph, const Layout& layout, ScheduleKind kind,
                 const PipelineShape& shape, const std::vector<CellRange>& cells) {
  const CellWork work(graph);
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < layout.group_size(); ++rank)
    schedules.push_back(make_schedule(kind, shape, layout.roles(rank)[0].stage));
  std::vector<StageCost> costs;
  for (size_t stage = 0; stage < cells.size(); ++stage) {
    const double forward = work.of(cells[stage], layout.stages()[stage]);
    costs.push_back({forward, 2 * forward});
  }
  return simulate(layout, schedules, costs).duration;
}

TEST(FastestBalance, NoOtherCutOfTwoStagesIsFaster) {
  const Graph graph = small_resnet();
  const int cells = static_cast<int>(graph.cells().size());
  for (const Grid& first : {Grid{1, 1, 1}, Grid{1, 2, 2}, Grid{2, 1, 1}})
    for (const int parts : {1, 2, 8}) {
      const Layout layout(first.size() + 1, {first, {}});
      const PipelineShape shape{2, parts};
      const auto kind = ScheduleKind::one_f_one_b;
      const double chosen =
          step_time(graph, layout, kind, shape, fastest_balance(graph, layout, kind, shape));
      for (int cut = 1; cut < cells; ++cut)
        EXPECT_LE(chosen,
                  step_time(graph, layout, kind, shape, {{0, cut}, {cut, cells}}) * 1.000001)
            << "cut " << cut << ", " << parts << " parts";
    }
}

/// Without micro-batches the last rank only keeps four tiles waiting.
TEST(FastestBalance, GivesTilesAllTheyCanTake) {
  const Graph graph = small_resnet();
  const Layout layout(5, {Grid{1, 2, 2}, {}});
  EXPECT_EQ(sizes(fastest_balance(graph, layout, ScheduleKind::gpipe, {2, 1})),
            (std::vector<int>{static_cast<int>(graph.cells().size()) - 1, 1}));
}

/// The even share is 13 and 3 cells.
TEST(FastestBalance, MovesCellsThatShareParametersTogether) {
  const Layout layout(5, {Grid{1, 2, 2}, {}});
  const auto balance = [&](const std::string& letters) {
    return sizes(fastest_balance(convolutions(letters), layout, ScheduleKind::gpipe, {2, 1}));
  };
  EXPECT_EQ(balance("abcdefghijklmnop"), (std::vector<int>{15, 1}));
  EXPECT_EQ(balance("abcdefghijklmnno"), (std::vector<int>{15, 1}));
  EXPECT_EQ(balance("abcdefghijklmnon"), (std::vector<int>{13, 3}));
}

TEST(FastestBalance, SharesEvenlyWhereNothingIsGained) {
  const Graph graph = small_resnet();
  const std::vector<Grid> stages(3);
  EXPECT_EQ(sizes(fastest_balance(graph, Layout(3, stages), ScheduleKind::gpipe, {3, 1})),
            sizes(balance_cells(graph, stages)));
}

TEST(FastestBalance, OfTwoDirectionsIsNoSlowerThanAnEvenShare) {
  const Graph graph = small_resnet();
  const std::vector<Grid> stages(4);
  const Layout layout(4, stages, /*gems=*/true);
  const PipelineShape shape{4, 2, 2};
  const auto time = [&](const std::vector<CellRange>& cells) {
    return step_time(graph, layout, ScheduleKind::gems, shape, cells);
  };
  EXPECT_LE(time(fastest_balance(graph, layout, ScheduleKind::gems, shape)),
            time(balance_cells(graph, stages)));
}

}  // namespace
}  // namespace mpi4dl
