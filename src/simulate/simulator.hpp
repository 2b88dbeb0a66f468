#pragma once

#include <string>
#include <vector>

#include "layout/layout.hpp"
#include "simulate/schedule.hpp"

namespace mpi4dl {

/// Says how long one micro-batch takes in a stage, in any unit.
struct StageCost {
  double forward = 1;
  double backward = 2;
};

/// Simulation is what a simulated schedule came to.
struct Simulation {
  struct Span {
    int rank;
    Action action;
    double begin, end;
  };

  bool complete = false;
  std::string stuck;  ///< who waits for what, where the schedule does not end
  double duration = 0;
  double bubble = 0;           ///< the share of all ranks' time in which they wait
  std::vector<int> peak_live;  ///< by rank: micro-batches between forward and backward at once
  std::vector<Span> spans;     ///< in the order of their beginning
};

/// Simulates one replica: a stage starts an action when all its ranks have come to it and the stage
/// before (forward) or behind (backward) has finished it. Free of deadlock and complete if every
/// action of every rank was done, and each micro-batch went forward and backward through all
/// stages.
Simulation simulate(const Layout& layout, const std::vector<Schedule>& by_rank,
                    const std::vector<StageCost>& costs);

/// Draws what runs when: one row a rank, one column a unit of time. Neighbours that do the same
/// share a row.
std::string to_grid(const Simulation& simulation, int ranks);

}  // namespace mpi4dl
