#pragma once

#include <map>

#include "comm/communicator.hpp"
#include "pipeline/stage_parameters.hpp"
#include "train/sharded_update.hpp"

namespace mpi4dl {

/// Returns the factor that clips the norm of the whole gradient to `clip_norm`, as
/// torch.nn.utils.clip_grad_norm_ does; 1 where that is 0, or the norm is not larger. The gradient
/// counts each stage once, however many ranks hold it; of each, a rank's shard must be complete.
/// Collective over the world.
double clipping_scale(double clip_norm, const StageParameters& parameters,
                      const std::map<int, ShardedUpdate>& updates, const Communicator& world);

}  // namespace mpi4dl
