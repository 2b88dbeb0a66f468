#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ops/parameters.hpp"
#include "pipeline/team.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// The parameters of each stage that a rank holds.
using StageParameters = std::map<int, std::unique_ptr<Parameters>>;

/// Those of a seed. `cells`: of each stage.
StageParameters make_parameters(const Graph& graph, const std::vector<CellRange>& cells,
                                const Team& team, c10::ScalarType type, uint64_t seed);

}  // namespace mpi4dl
