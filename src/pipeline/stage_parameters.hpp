#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "execute/parameters.hpp"
#include "pipeline/process_groups.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Maps each stage of a rank to its parameters.
using StageParameters = std::map<int, std::unique_ptr<Parameters>>;

/// Makes the parameters that this rank holds, by the seed. `cells` are those of each stage.
StageParameters make_parameters(const Graph& graph, const std::vector<CellRange>& cells,
                                const ProcessGroups& groups, c10::ScalarType type, uint64_t seed);

/// Names the parameters of the cells before one. Where a stage that begins with that cell has one
/// of them too, which is frozen then, the stage before answers for it.
std::set<std::string> parameters_before(const Graph& graph, int cell);

}  // namespace mpi4dl
