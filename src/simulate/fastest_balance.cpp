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

/// Returns the next cell in a direction with which a stage may begin; one beyond the cells where
/// there is none.
int next_begin(const std::vector<bool>& begins, int cell, int by) {
  const int cells = static_cast<int>(begins.size());
  do cell += by;
  while (cell >= 0 && cell < cells && !begins[cell]);
  return cell;
}

}  // namespace

std::vector<CellRange> fastest_balance(const Graph& graph, const Layout& layout, ScheduleKind kind,
                                       const PipelineShape& shape) {
  const StepSimulator simulator(graph, layout, kind, shape);
  const std::vector<bool> begins = stage_begins(graph);
  std::vector<CellRange> best = balance_cells(graph, layout.stages());
  constexpr double kWorthIt = 1 - 1e-9;  // rounding is no gain
  double least = simulator.step(best);
  // From the even share on, as few cells as can be over any cut, as long as that helps.
  for (bool better = true; better;) {
    better = false;
    for (size_t cut = 1; cut < best.size(); ++cut)
      for (const int by : {-1, 1}) {
        std::vector<CellRange> other = best;
        const int begin = next_begin(begins, best[cut].first, by);
        if (other[cut - 1].first >= begin || begin >= other[cut].last) continue;
        other[cut - 1].last = other[cut].first = begin;
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
