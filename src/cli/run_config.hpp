#pragma once

#include <string>
#include <vector>

#include "cli/training_flags.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

/// Returns what a run was started with, as JSON: all flags with their values or defaults, what they
/// came to, and the version. `command` has parsed them.
std::string run_config(const CLI::App& command, const Graph& graph, const Layout& layout,
                       const std::vector<CellRange>& cells, const TrainingFlags& flags);

/// Returns the flags that repeat the run from its beginning, as a file for --config: those that
/// were given, but for where results and checkpoints go.
std::string replay_config(const CLI::App& command, int ranks, int threads);

}  // namespace mpi4dl
