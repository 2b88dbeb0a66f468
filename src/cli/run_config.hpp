#pragma once

#include <string>
#include <vector>

#include "cli/training_flags.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

/// What a run was started with, as JSON: all flags with their values or defaults, what they came
/// to, and the version. `command` has parsed them.
std::string run_config(const CLI::App& command, const Graph& graph, const Layout& layout,
                       const std::vector<CellRange>& cells, const TrainingFlags& flags);

}  // namespace mpi4dl
