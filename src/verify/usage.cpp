#include "verify/usage.hpp"
#include "comm/collectives.hpp"

#include <algorithm>

namespace mpi4dl {

std::optional<Usage> planned_usage(const Graph& graph, const Layout& layout,
                                   const VerificationOptions& options) {
  if (options.trainer.stage.recompute) return std::nullopt;
  const auto width = static_cast<int64_t>(c10::elementSize(options.trainer.type));
  Usage all;
  for (const MicroBatch& batch : all_micro_batches(options.batch)) {
    const PipelinePlan plan(graph, layout.stages(), options.trainer.cells,
                            static_cast<int64_t>(batch.size()), options.trainer.halo);
    const PipelinePlan::Cost cost = plan.cost();
    all.messages += cost.messages * options.steps;
    all.bytes += cost.elements * options.steps * width;
  }
  return all;
}

Usage measured_usage(const StepResult& mine, const Communicator& world) {
  Usage all;
  for (const Usage& rank :
       all_gather(Usage{mine.sent.messages, mine.sent.bytes, mine.peak_bytes}, world)) {
    all.messages += rank.messages;
    all.bytes += rank.bytes;
    all.peak_bytes = std::max(all.peak_bytes, rank.peak_bytes);
  }
  return all;
}

}  // namespace mpi4dl
