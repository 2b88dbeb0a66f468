#pragma once

#include <vector>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Counts how often a value is read: in all, as it was computed, and after its exchange.
struct Readers {
  int all = 0, local = 0, extended = 0;
};

/// Segment is a run of cells that recompute runs again at once, before its backward.
struct Segment {
  std::vector<int> nodes;
  /// Lists values of earlier segments that no segment before this one reads: after its backward
  /// nobody needs them any more.
  std::vector<int> first_reads;
};

/// Holds the nodes of a stage by segments, and who reads whom.
struct Segments {
  Segments(const StagePlan& plan, const std::vector<CellRange>& cells);

  std::vector<Segment> list;
  std::vector<int> of_node;              // -1: not of this stage
  std::vector<Readers> readers, inside;  // by node: in all, and in the node's own segment
  bool together(int from, int to) const { return of_node[from] == of_node[to]; }
};

}  // namespace mpi4dl
