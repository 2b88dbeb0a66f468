#pragma once

#include <vector>

#include "graph/graph.hpp"
#include "layout/micro_batches.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Transfer is a value that one stage makes and a later one reads. Where several stages read it,
/// each has a transfer of its own from the maker, over any number of stages in between.
struct Transfer {
  int value = 0;
  int from = 0, to = 0;  ///< stages

  bool operator==(const Transfer&) const = default;
};

/// Plans all stages of a model for one size of micro-batch, and what travels between them.
///
/// Positions count the ranks of a model-parallel group: the tiles of stage 0, then those of stage
/// 1, and so on. A reader receives its boxes with the margins that it will need.
class PipelinePlan {
 public:
  PipelinePlan(const Graph& graph, const std::vector<Grid>& grids,
               const std::vector<CellRange>& cells, int64_t micro_batch, const HaloDesign& design);

  int64_t micro_batch() const { return micro_batch_; }
  const std::vector<StagePlan>& stages() const { return stages_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

  /// Counts what all ranks together send for one micro-batch, forward and backward.
  struct Cost {
    int64_t messages = 0, elements = 0;
  };
  Cost cost() const;

  /// Returns by position what the maker's ranks own of a transfer's value, and what the reader's
  /// need.
  std::vector<std::vector<Box>> owned(const Transfer& transfer) const;
  std::vector<std::vector<Box>> needed(const Transfer& transfer) const;

 private:
  std::vector<std::vector<Box>> by_position(int stage, const std::vector<Box>& boxes) const;

  int64_t micro_batch_;
  std::vector<StagePlan> stages_;
  std::vector<Transfer> transfers_;
};

/// Makes one plan for each size of these micro-batches.
std::vector<PipelinePlan> plan_sizes(const Graph& graph, const std::vector<Grid>& grids,
                                     const std::vector<CellRange>& cells,
                                     const std::vector<MicroBatch>& batches,
                                     const HaloDesign& design);

}  // namespace mpi4dl
