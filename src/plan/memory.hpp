#pragma once

#include <cstdint>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// The largest number of bytes that activations and their gradients take on `rank` at any moment
/// of one training step: stage inputs, what backward keeps, halos, padding and temporaries.
/// Parameters and their gradients are not counted. It plays the step on paper, in the order and
/// with the storage of ops/StageRunner.
int64_t activation_bytes(const StagePlan& plan, int rank, int64_t element_size);

}  // namespace mpi4dl
