#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "plan/stage_plan.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// Holds the flags that spread a model over ranks, for every command that runs or plans one.
struct ParallelFlags {
  ParallelOptions options;
  HaloDesign halo;
  std::vector<int> balance;  ///< cells of each stage; empty: the command chooses

  void add_to(CLI::App& command);
  /// Adds --gems and --parallelism, for commands that go both ways.
  void add_gems_to(CLI::App& command);
  /// Throws UsageError where flags contradict each other.
  void check() const;
  /// Returns the cells of each stage for images that stream through: as --balance says, or else by
  /// their work.
  std::vector<CellRange> cells(const Graph& graph, const Layout& layout) const;
};

/// Adds --halo-D2 and --fused-layers alone.
void add_halo_flags(CLI::App& command, HaloDesign& halo);
void check_halo_flags(const HaloDesign& halo);

}  // namespace mpi4dl
