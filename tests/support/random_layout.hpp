#pragma once

#include <vector>

#include "graph/operators.hpp"
#include "plan/stage_plan.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {

/// Draws between 9 and 40 pixels, or a small volume; two pixels for each tile at least.
Shape draw_image(Dice& dice, const std::vector<Grid>& grids);

/// Draws all ranks in one stage, or any number of stages with any number of ranks each.
std::vector<Grid> draw_stages(Dice& dice, int ranks);

int draw_divisor(Dice& dice, int number);

/// Draws at least one cell for each stage. Throws UsageError where there are too few.
std::vector<CellRange> draw_balance(Dice& dice, int cells, int stages);

}  // namespace mpi4dl::testing
