#include "plan/balance.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

void check_enough_cells(const Graph& graph, size_t stages) {
  validate(stages <= graph.cells().size(), "a model of {} cells cannot be split into {} stages",
           graph.cells().size(), stages);
}

}  // namespace

CellWork::CellWork(const Graph& graph)
    : before_(graph.cells().size() + 1, 0),
      smallest_(graph.cells().size(),
                {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()}) {
  for (const Node& node : graph.nodes()) {
    const Extents& space = node.shape.space;
    const int64_t pixels =
        std::accumulate(space.begin(), space.end(), int64_t{1}, std::multiplies<>());
    before_[node.cell + 1] += static_cast<double>(flops(graph, node, pixels));
    if (space.empty()) continue;
    Extent& cell = smallest_[node.cell];
    cell = {std::min(cell.rows, space[space.size() - 2]), std::min(cell.cols, space.back())};
  }
  std::partial_sum(before_.begin(), before_.end(), before_.begin());
}

double CellWork::of(const CellRange& cells, const Grid& grid) const {
  constexpr double kUnfit = 1e30;
  const auto unfit = std::count_if(
      smallest_.begin() + cells.first, smallest_.begin() + cells.last,
      [&](const Extent& cell) { return cell.rows < grid.rows || cell.cols < grid.cols; });
  return (before_[cells.last] - before_[cells.first]) / grid.size() +
         kUnfit * static_cast<double>(unfit);
}

std::vector<CellRange> balance_cells(const Graph& graph, const std::vector<Grid>& stages) {
  check_enough_cells(graph, stages.size());
  const CellWork work(graph);
  const int cells = static_cast<int>(graph.cells().size());
  const int count = static_cast<int>(stages.size());
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // worst[s][c]: the slowest rank's work if the first s stages hold the first c cells.
  std::vector<std::vector<double>> worst(count + 1, std::vector<double>(cells + 1, kNever));
  std::vector<std::vector<int>> begin(count + 1, std::vector<int>(cells + 1, 0));
  worst[0][0] = 0;
  for (int s = 1; s <= count; ++s)
    for (int last = s; last <= cells; ++last)
      for (int first = s - 1; first < last; ++first) {
        const double slowest = std::max(worst[s - 1][first], work.of({first, last}, stages[s - 1]));
        if (slowest >= worst[s][last]) continue;
        worst[s][last] = slowest;
        begin[s][last] = first;
      }
  std::vector<CellRange> ranges(count);
  for (int s = count, last = cells; s >= 1; --s) {
    ranges[s - 1] = {begin[s][last], last};
    last = begin[s][last];
  }
  return ranges;
}

std::vector<CellRange> given_balance(const Graph& graph, const std::vector<Grid>& stages,
                                     const std::vector<int>& cells) {
  check_enough_cells(graph, stages.size());
  const int sum = std::accumulate(cells.begin(), cells.end(), 0);
  const bool positive = std::all_of(cells.begin(), cells.end(), [](int c) { return c > 0; });
  validate(
      cells.size() == stages.size() && sum == static_cast<int>(graph.cells().size()) && positive,
      "--balance {} must name {} positive numbers of cells that sum to {}, not {}",
      fmt::join(cells, ","), stages.size(), graph.cells().size(), sum);
  std::vector<CellRange> ranges;
  int first = 0;
  for (const int count : cells) {
    ranges.push_back({first, first + count});
    first += count;
  }
  return ranges;
}

}  // namespace mpi4dl
