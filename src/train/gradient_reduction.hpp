#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/sharded_reduction.hpp"
#include "ops/parameters.hpp"

namespace mpi4dl {

/// Sums what a step has added to the parameters of a stage over all ranks that hold them: tiles,
/// replicas and directions alike.
///
/// Cells come in from the last to the first, as backward finishes them, and travel in buckets while
/// the rest computes. What did not come, because this rank had nothing to go back through, has
/// nothing to add but joins in. On one node nothing travels: all is added up in the end, by each
/// rank in its own slice, with all its digits.
class GradientReduction {
 public:
  struct Options {
    int64_t bucket_bytes = int64_t{4} << 20;
    bool half = false;  ///< gradients travel between nodes as float16; see ShardedReduction
  };
  GradientReduction(Parameters& parameters, const Communicator& holders, const Options& options);

  /// All gradients of the last cell that was not added yet are complete.
  void add(int cell);
  /// Adds the cells that are missing, and waits until all sums are complete. Collective over the
  /// holders.
  void finish();
  /// The gradients whose sums are then complete on this rank: all, or its slice of them.
  Interval complete() const;
  /// That slice; none where every rank has all sums. The first call is collective.
  static std::optional<Interval> slice(const Parameters& parameters, const Communicator& holders);

 private:
  void start(const at::Tensor& sums, ShardedReduction::Wire wire);
  void send_sums_on();

  Parameters& parameters_;
  const Communicator& holders_;
  Options options_;
  bool travels_;
  std::optional<Interval> slice_;
  std::vector<int> missing_;  // cells, the next one last
  int bucket_end_ = 0;        // one behind the last cell that is not on its way
  std::vector<ShardedReduction> buckets_;
};

/// All cells at once, completely on every rank.
void reduce(Parameters& parameters, const Communicator& holders);

}  // namespace mpi4dl
