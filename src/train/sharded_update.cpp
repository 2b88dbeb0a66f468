#include "train/sharded_update.hpp"

#include "comm/collectives.hpp"

namespace mpi4dl {

ShardedUpdate::ShardedUpdate(const Parameters& parameters, const Communicator& group)
    : group_(group), shard_{0, parameters.gradient_memory().numel()} {
  if (const auto own = own_shard(parameters.gradient_memory(), group)) {
    sharded_ = true;
    shard_ = *own;
  }
}

void ShardedUpdate::reduce(at::Tensor gradients) const {
  if (sharded_) {
    reduce_scatter(gradients, group_);
  } else if (gradients.numel() > 0) {
    all_reduce(gradients, group_);
  }
}

void ShardedUpdate::gather(const at::Tensor& elements) const {
  if (sharded_) all_gather_shards(elements, group_);
}

}  // namespace mpi4dl
