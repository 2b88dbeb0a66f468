#include "train/batch_norm_check.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns how many values of a channel each set of statistics covers; the fewest where they
/// differ.
int64_t samples(const StagePlan& plan, int node, BatchNormScope scope, int replicas) {
  const int64_t all = plan.batch() * positions(plan.graph().node(node).shape.space);
  if (scope == BatchNormScope::replicas) return all * replicas;
  if (scope == BatchNormScope::global) return all;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const Box& owned : plan.value(node).owned)
    if (!owned.empty()) fewest = std::min(fewest, owned.elements() / owned[1].length());
  return fewest;
}

}  // namespace

void check_batch_norms(const PipelinePlan& plan, BatchNormScope scope, int replicas) {
  for (const StagePlan& stage : plan.stages())
    for (const int id : stage.nodes()) {
      const Node& node = stage.graph().node(id);
      const auto* norm = std::get_if<BatchNorm>(&node.op);
      validate(norm == nullptr || norm->frozen || samples(stage, id, scope, replicas) > 1,
               "batch norm {} has one value a channel in a micro-batch of {}, and one value has no "
               "variance; use larger micro-batches",
               node.name, stage.batch());
    }
}

}  // namespace mpi4dl
