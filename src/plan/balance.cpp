#include "plan/balance.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// FLOPs of all cells before each cell.
std::vector<double> cumulative_flops(const Graph& graph) {
  std::vector<double> sum(graph.cells().size() + 1, 0);
  for (const Node& node : graph.nodes()) {
    const int64_t pixels = std::accumulate(node.shape.space.begin(), node.shape.space.end(),
                                           int64_t{1}, std::multiplies<>());
    sum[node.cell + 1] += static_cast<double>(flops(graph, node, pixels));
  }
  std::partial_sum(sum.begin(), sum.end(), sum.begin());
  return sum;
}

/// For each cell, the smallest number of rows and columns of its layers.
struct CellExtent {
  int64_t rows = std::numeric_limits<int64_t>::max();
  int64_t cols = std::numeric_limits<int64_t>::max();
};

std::vector<CellExtent> smallest_extents(const Graph& graph) {
  std::vector<CellExtent> extents(graph.cells().size());
  for (const Node& node : graph.nodes()) {
    const Extents& space = node.shape.space;
    if (space.empty()) continue;
    CellExtent& cell = extents[node.cell];
    cell.rows = std::min(cell.rows, space[space.size() - 2]);
    cell.cols = std::min(cell.cols, space.back());
  }
  return extents;
}

void check_enough_cells(const Graph& graph, size_t stages) {
  validate(stages <= graph.cells().size(), "a model of {} cells cannot be split into {} stages",
           graph.cells().size(), stages);
}

}  // namespace

std::vector<CellRange> balance_cells(const Graph& graph, const std::vector<Grid>& stages) {
  check_enough_cells(graph, stages.size());
  const std::vector<double> before = cumulative_flops(graph);
  const int cells = static_cast<int>(graph.cells().size());
  const int count = static_cast<int>(stages.size());
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // A cell with layers smaller than the stage's grid goes to another stage if there is a way.
  constexpr double kUnfit = 1e30;
  const std::vector<CellExtent> extents = smallest_extents(graph);
  // worst[s][c]: the slowest rank's work if the first s stages hold the first c cells.
  std::vector<std::vector<double>> worst(count + 1, std::vector<double>(cells + 1, kNever));
  std::vector<std::vector<int>> begin(count + 1, std::vector<int>(cells + 1, 0));
  worst[0][0] = 0;
  for (int s = 1; s <= count; ++s)
    for (int last = s; last <= cells; ++last)
      for (int first = s - 1; first < last; ++first) {
        const Grid& grid = stages[s - 1];
        const auto unfit = std::count_if(
            extents.begin() + first, extents.begin() + last,
            [&](const CellExtent& cell) { return cell.rows < grid.rows || cell.cols < grid.cols; });
        const double own =
            (before[last] - before[first]) / grid.size() + kUnfit * static_cast<double>(unfit);
        const double slowest = std::max(worst[s - 1][first], own);
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
