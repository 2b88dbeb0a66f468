#pragma once

#include <vector>

#include "models/registry.hpp"
#include "plan/stage_plan.hpp"

// What tests of balances share.
namespace mpi4dl::testing {

inline Graph small_resnet() {
  return build_model({.name = "resnet", .image = {64, 64}, .depth = 29});
}

/// Counts the cells of each stage.
inline std::vector<int> sizes(const std::vector<CellRange>& ranges) {
  std::vector<int> cells;
  for (const CellRange& range : ranges) cells.push_back(range.last - range.first);
  return cells;
}

}  // namespace mpi4dl::testing
