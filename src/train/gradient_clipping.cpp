#include "train/gradient_clipping.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "comm/collectives.hpp"
#include "comm/staging.hpp"

namespace mpi4dl {

double clipping_scale(double clip_norm, const StageParameters& parameters,
                      const std::map<int, ShardedUpdate>& updates, const Communicator& world) {
  if (clip_norm <= 0) return 1;
  double squares = 0;
  for (const auto& [stage, held] : parameters) {
    const ShardedUpdate& update = updates.at(stage);
    const at::Tensor shard =
        held->gradient_memory().narrow(0, update.shard().begin, update.shard().length());
    const double norm = in_host_memory(shard.norm(2, at::kDouble), world.context()).item<double>();
    squares += norm * norm / update.copies();
  }
  at::Tensor sum = at::full({1}, squares, at::kDouble);
  all_reduce(sum, world);
  const double norm = std::sqrt(sum.item<double>());
  return norm > clip_norm ? clip_norm / norm : 1;
}

}  // namespace mpi4dl
