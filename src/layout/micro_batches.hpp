#pragma once

#include <cstdint>
#include <vector>

namespace mpi4dl {

/// Says how the images of one optimizer step are shared out.
struct BatchShape {
  int64_t batch = 1;  ///< images of one replica that go through the model together
  int parts = 1;      ///< micro-batches of these
  int times = 1;      ///< GEMS: how many such batches make a step, in alternate directions
  int replicas = 1;

  /// Returns how many images all replicas together learn from in one step.
  int64_t effective() const { return batch * times * replicas; }
};

/// Lists the images of a micro-batch, by their place in the effective batch.
using MicroBatch = std::vector<int64_t>;

/// Returns the micro-batches of a replica in the order of its step. Batches that parts do not
/// divide give micro-batches of two sizes. Throws UsageError where a micro-batch would be empty.
std::vector<MicroBatch> micro_batches(const BatchShape& shape, int replica);

/// Returns the micro-batches of all replicas one after the other: what one rank would do alone.
std::vector<MicroBatch> all_micro_batches(const BatchShape& shape);

/// Returns the micro-batches that all replicas run at the same time, joined: what batch norm across
/// replicas sees.
std::vector<MicroBatch> joined_micro_batches(const BatchShape& shape);

}  // namespace mpi4dl
