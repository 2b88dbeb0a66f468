#pragma once

#include "train/gradient_reduction.hpp"

namespace mpi4dl::testing {

/// Sums what a step has added, of all cells at once and completely on every rank of the group.
/// Collective.
inline void reduce(Parameters& parameters, const Communicator& group) {
  const ShardedUpdate update(parameters, group);
  GradientReduction(parameters, update, {}).finish();
  update.gather(parameters.gradient_memory());
}

}  // namespace mpi4dl::testing
