#pragma once

#include <compare>
#include <map>
#include <vector>

#include "geometry/grid.hpp"
#include "graph/graph.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Tells what runs of cells take.
class CellWork {
 public:
  explicit CellWork(const Graph& graph);
  /// Returns the FLOPs of the busiest rank if a grid runs these cells: its share of all layers but
  /// those that are smaller than the grid, which the first tile has alone.
  double of(const CellRange& cells, const Grid& grid) const;

 private:
  struct Extent {
    int64_t rows, cols;
    auto operator<=>(const Extent&) const = default;
  };
  static Extent extent_of_work(const Graph& graph, const Node& node);
  std::vector<std::map<Extent, double>> cells_;  // FLOPs of each cell's layers, by their extents
};

/// Returns of each cell whether a stage may begin with it: not where cells before it and behind it
/// share a parameter that is trained, whose gradient is summed up within one stage.
std::vector<bool> stage_begins(const Graph& graph);

/// Returns the cells of each stage such that the slowest rank has as few FLOPs as possible: a
/// stage's work is shared by its ranks. Throws UsageError where the cells are too few, or share
/// parameters.
std::vector<CellRange> balance_cells(const Graph& graph, const std::vector<Grid>& stages);

/// Returns the user's own balance: how many cells each stage gets. Throws UsageError where it does
/// not sum to the number of cells.
std::vector<CellRange> given_balance(const Graph& graph, const std::vector<Grid>& stages,
                                     const std::vector<int>& cells);

}  // namespace mpi4dl
