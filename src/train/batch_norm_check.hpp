#pragma once

#include "execute/stage_executor.hpp"
#include "plan/pipeline_plan.hpp"

namespace mpi4dl {

/// Throws UsageError where a batch norm would have one value a channel to normalise in training:
/// that has no variance. It happens to pooled values of a single image.
void check_batch_norms(const PipelinePlan& plan, BatchNormScope scope, int replicas);

}  // namespace mpi4dl
