#pragma once

#include <vector>

#include "cli/training_flags.hpp"
#include "pipeline/rank_memory.hpp"

namespace mpi4dl {

/// A training run by arithmetic alone: who would run what, and in how much memory.
struct PlannedRun {
  /// `ranks` 0: those of one replica. `workers`: threads of a rank that read images ahead. Throws
  /// UsageError where the flags are not sound.
  PlannedRun(const Graph& graph, const TrainingFlags& flags, int ranks, int workers);

  /// The rank of each stage that needs the most.
  std::vector<RankMemory> busiest() const;
  /// The most that any rank needs.
  int64_t most() const;

  Layout layout;
  TrainerOptions trainer;
  MemoryOptions options;
  PipelinePlan plan;
  std::vector<RankMemory> memory;  ///< of each rank of a replica
};

}  // namespace mpi4dl
