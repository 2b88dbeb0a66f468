#pragma once

#include "cli/training_flags.hpp"
#include "comm/session.hpp"
#include "simulate/planned_run.hpp"

namespace mpi4dl {

/// Says where a planned run computes.
struct PlannedPlace {
  Kernels kernels = Kernels::own;
  bool on_device = false;
};

/// Returns the place where the ranks of this session compute.
PlannedPlace place_of(const Session& session);

/// Plans the run that these flags ask for. `ranks` 0: those of one replica. `workers`: threads of a
/// rank that load images ahead. Throws UsageError where the flags are not sound.
PlannedRun plan_run(const Graph& graph, const TrainingFlags& flags, int ranks, int workers,
                    const PlannedPlace& place);

}  // namespace mpi4dl
