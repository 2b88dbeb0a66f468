#include "plan/balance.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Stands for the extent of values without pixels, whose work is too small to count apart.
constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

void check_enough_cells(const Graph& graph, size_t stages) {
  validate(stages <= graph.cells().size(), "a model of {} cells cannot be split into {} stages",
           graph.cells().size(), stages);
}

void check_enough_begins(const Graph& graph, const std::vector<bool>& begins, size_t stages) {
  const auto most = static_cast<size_t>(std::ranges::count(begins, true));
  validate(stages <= most,
           "a model of {} cells cannot be split into {} stages, but into {} at most: cells that "
           "share parameters are in one stage",
           graph.cells().size(), stages, most);
}

}  // namespace

CellWork::CellWork(const Graph& graph) : cells_(graph.cells().size()) {
  for (const Node& node : graph.nodes()) {
    cells_[node.cell][extent_of_work(graph, node)] +=
        static_cast<double>(flops(graph, node, positions(node.shape.space)));
  }
}

/// Tiles share the work of a node that pools by the pixels that it reads, where those it writes are
/// too few.
CellWork::Extent CellWork::extent_of_work(const Graph& graph, const Node& node) {
  const Extents* space = &node.shape.space;
  if (space->empty()) return {kAnyNumber, kAnyNumber};
  if (properties(node.op).pooling != Pooling::none)
    if (const Extents& read = graph.node(node.inputs[0]).shape.space;
        positions(read) > positions(*space))
      space = &read;
  return {(*space)[space->size() - 2], space->back()};
}

double CellWork::of(const CellRange& cells, const Grid& grid) const {
  double shared = 0, joined = 0;
  for (int cell = cells.first; cell < cells.last; ++cell)
    for (const auto& [extent, flops] : cells_[cell]) {
      const bool fits = extent.rows >= grid.rows && extent.cols >= grid.cols;
      (fits ? shared : joined) += flops;
    }
  return shared / grid.size() + joined / grid.batch;
}

std::vector<bool> stage_begins(const Graph& graph) {
  std::vector<bool> begins(graph.cells().size(), true);
  std::map<std::string, int> sharers;  // so far, the last of each parameter
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters) {
      if (!parameter.trained()) continue;
      int& last = sharers.emplace(parameter.name, node.cell).first->second;
      while (last < node.cell) begins[++last] = false;
    }
  return begins;
}

std::vector<CellRange> balance_cells(const Graph& graph, const std::vector<Grid>& stages) {
  check_enough_cells(graph, stages.size());
  const std::vector<bool> begins = stage_begins(graph);
  check_enough_begins(graph, begins, stages.size());
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
        if (!begins[first]) continue;
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
  validate(cells.size() == stages.size(), "a balance of {} is for {} stage{}, but there {} {}",
           fmt::join(cells, ","), cells.size(), cells.size() == 1 ? "" : "s",
           stages.size() == 1 ? "is" : "are", stages.size());
  validate(sum == static_cast<int>(graph.cells().size()) && positive,
           "a balance of {} must name {} positive numbers of cells that sum to {}, not {}",
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
