#pragma once

#include <vector>

#include "simulate/rank_memory.hpp"
#include "simulate/simulator.hpp"

namespace mpi4dl {

/// PlannedRun is a dry run of training: who would run what, and in how much memory, by arithmetic
/// alone.
struct PlannedRun {
  /// Throws UsageError where model, layout and batch do not fit each other.
  PlannedRun(const Graph& graph, Layout layout, std::vector<CellRange> cells,
             const HaloDesign& halo, const MemoryOptions& options);

  /// Returns the memory of the rank of each stage that needs the most.
  std::vector<RankMemory> busiest() const;
  /// Returns the memory of the rank that needs the most.
  const RankMemory& largest() const;
  /// Returns the most that any rank needs, on its device where it has one.
  int64_t most() const { return largest().decisive(); }
  /// Returns the most of any rank of each stage, for one micro-batch.
  std::vector<RankCost> costs() const;
  /// Simulates an optimizer step; throws Error where its schedule does not end.
  Simulation simulate_step() const;

  Layout layout;
  std::vector<CellRange> cells;  ///< of each stage
  MemoryOptions options;
  PipelinePlan plan;
  std::vector<RankMemory> memory;  ///< of each rank of a replica
};

}  // namespace mpi4dl
