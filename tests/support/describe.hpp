#pragma once

#include <string>

#include "graph/graph.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl::testing {

/// Says all that is needed to build a failing graph again: a line per node with its options.
std::string describe(const Graph& graph);

/// Returns, for example, "design 1" or "D2 with 3 fused".
std::string describe(const HaloDesign& halo);

}  // namespace mpi4dl::testing
