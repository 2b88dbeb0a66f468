#pragma once

#include "comm/communicator.hpp"
#include "simulate/simulator.hpp"

namespace mpi4dl {

/// Returns how many of these ranks compute while `rank` does, itself included: the mean over the
/// time that it computes. All belong to the simulated replica; a rank may be listed several times.
double ranks_at_once(const Simulation& simulation, int rank, const std::vector<int>& ranks);

/// Returns the threads that this rank should compute with: the cores that it may use, divided by
/// the ranks that compute on them at the same time. So the lone last stage behind four tiles has
/// all cores while the tiles wait for it. OMP_NUM_THREADS overrides. `mine` is this rank's
/// schedule. Collective over the world.
int share_of_threads(const Layout& layout, const Schedule& mine,
                     const std::vector<StageCost>& costs, const Communicator& world);

}  // namespace mpi4dl
