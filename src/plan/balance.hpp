#pragma once

#include <vector>

#include "geometry/grid.hpp"
#include "graph/graph.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// What runs of cells take.
class CellWork {
 public:
  explicit CellWork(const Graph& graph);
  /// FLOPs of each rank if a grid runs these cells. Beyond measure where a layer is smaller than
  /// the grid: such a cell goes to another stage if there is a way.
  double of(const CellRange& cells, const Grid& grid) const;

 private:
  struct Extent {
    int64_t rows, cols;
  };
  std::vector<double> before_;    // FLOPs of all cells before each one
  std::vector<Extent> smallest_;  // of the layers of each cell
};

/// Cells of each stage such that the slowest rank has as few FLOPs as possible: a stage's work is
/// shared by its ranks. Cells with layers too small for a grid go to another stage where possible.
std::vector<CellRange> balance_cells(const Graph& graph, const std::vector<Grid>& stages);

/// The user's own balance: how many cells each stage gets. Throws UsageError where it does not sum
/// to the number of cells.
std::vector<CellRange> given_balance(const Graph& graph, const std::vector<Grid>& stages,
                                     const std::vector<int>& cells);

}  // namespace mpi4dl
