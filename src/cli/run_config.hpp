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

/// Returns the flags that repeat the run, as a file for --config: those that were given, but for
/// where results and checkpoints go. `resumed_from`: the checkpoint that it went on from, or empty.
std::string replay_config(const CLI::App& command, int ranks, int threads,
                          const std::string& resumed_from);

}  // namespace mpi4dl
