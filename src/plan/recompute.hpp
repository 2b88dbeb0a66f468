#pragma once

#include <vector>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Returns the runs of cells that recompute should run again at once. What later runs read is kept,
/// and during its backward all of one run: short runs keep more of the one, long runs more of the
/// other, and these need the least. They are the same on all ranks.
std::vector<CellRange> recomputed_cells(const StagePlan& plan);

}  // namespace mpi4dl
