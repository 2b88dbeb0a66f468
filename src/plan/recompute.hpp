#pragma once

#include <vector>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// The runs of cells that recompute should run again at once. What passes between runs is kept, and
/// so is all of one run while it goes back: short runs keep more of the one, long runs more of the
/// other, and these need the least. The same on all ranks.
std::vector<CellRange> recomputed_cells(const StagePlan& plan);

}  // namespace mpi4dl
