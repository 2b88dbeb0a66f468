#include "simulate/fastest_balance.hpp"

#include "simulate/simulator.hpp"

namespace mpi4dl {
namespace {

/// Simulates steps of one layout and schedule with different balances.
class StepSimulator {
 public:
  StepSimulator(const Graph& graph, const Layout& layout, ScheduleKind kind,
                const PipelineShape& shape)
      : work_(graph), layout_(layout) {
    for (int rank = 0; rank < layout.group_size(); ++rank)
      schedules_.push_back(make_schedule(kind, shape, layout.roles(rank)[0].stage));
  }

  double step(const std::vector<CellRange>& cells) const {
    std::vector<StageCost> costs;
    for (size_t stage = 0; stage < cells.size(); ++stage) {
      const double forward = work_.of(cells[stage], layout_.stages()[stage]);
      costs.push_back({forward, 2 * forward});
    }
    return simulate(layout_, schedules_, costs).duration;
  }

 private:
  CellWork work_;
  const Layout& layout_;
  std::vector<Schedule> schedules_;
};

}  // namespace

std::vector<CellRange> fastest_balance(const Graph& graph, const Layout& layout, ScheduleKind kind,
                                       const PipelineShape& shape) {
  const StepSimulator simulator(graph, layout, kind, shape);
  std::vector<CellRange> best = balance_cells(graph, layout.stages());
  constexpr double kWorthIt = 1 - 1e-9;  // rounding is no gain
  double least = simulator.step(best);
  // From the even share on, a cell at a time over any cut, as long as that helps.
  for (bool better = true; better;) {
    better = false;
    for (size_t cut = 1; cut < best.size(); ++cut)
      for (const int by : {-1, 1}) {
        std::vector<CellRange> other = best;
        other[cut - 1].last = other[cut].first += by;
        if (other[cut - 1].first >= other[cut].first || other[cut].first >= other[cut].last)
          continue;
        const double time = simulator.step(other);
        if (time >= least * kWorthIt) continue;
        best = std::move(other);
        least = time;
        better = true;
      }
  }
  return best;
}

}  // namespace mpi4dl
