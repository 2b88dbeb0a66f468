#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "train/optimizer.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// Holds the flags by which some parameters learn otherwise than the rest. Patterns are shell
/// patterns over their names.
struct FineTuningFlags {
  std::vector<std::string> freeze;
  bool freeze_batch_norm = false;
  std::vector<std::string> rate_factors, weight_decays;  // PATTERN=NUMBER

  /// Adds the flags that decide what has gradients and optimizer memory.
  void add_freezing_to(CLI::App& command);
  /// Adds the others.
  void add_factors_to(CLI::App& command);

  /// Returns the graph with what is frozen. Throws UsageError where a pattern matches nothing.
  Graph frozen(const Graph& graph) const;
  /// Writes down what differs between the parameters of such a graph; of two patterns that match
  /// one of them, the later counts.
  void set(OptimizerOptions& optimizer, const Graph& graph) const;
};

}  // namespace mpi4dl
