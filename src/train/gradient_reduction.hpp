#pragma once

#include <vector>

#include "comm/sharded_reduction.hpp"
#include "execute/parameters.hpp"
#include "train/sharded_update.hpp"

namespace mpi4dl {

/// Sums what a step has added to the parameters of a stage over its data-parallel group: tiles,
/// replicas and directions alike.
///
/// Cells come in from the last to the first, as backward finishes them, and travel in buckets while
/// the rest computes. A cell that did not come, because this rank had no backward pass through it,
/// has nothing to add but joins in. On one node nothing travels: all is added up in the end, by
/// each rank in its own shard, with all its digits.
class GradientReduction {
 public:
  struct Options {
    int64_t bucket_bytes = int64_t{4} << 20;
    bool half = false;  ///< gradients travel between nodes as float16; see ShardedReduction
  };
  GradientReduction(Parameters& parameters, const ShardedUpdate& update, const Options& options);

  /// Adds the last cell that was not added yet, all of whose gradients are complete.
  void add(int cell);
  /// Adds the cells that are missing, and waits until the sums of this rank's shard are complete.
  /// Collective over the group.
  void finish();

 private:
  void start(const at::Tensor& sums, ShardedReduction::Wire wire);
  void send_sums_on();

  Parameters& parameters_;
  ShardedUpdate update_;
  Options options_;
  bool travels_;
  std::vector<int> missing_;  // cells, the next one last
  int bucket_end_ = 0;        // one behind the last cell that is not on its way
  struct Bucket {
    at::Tensor sums;             // of a device, maybe
    ShardedReduction reduction;  // in host memory
  };
  std::vector<Bucket> buckets_;
};

}  // namespace mpi4dl
