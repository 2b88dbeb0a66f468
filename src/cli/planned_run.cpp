#include "cli/planned_run.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "data/loader.hpp"
#include "ops/precision.hpp"

namespace mpi4dl {
namespace {

int ranks_of_one_replica(const TrainingFlags& flags) {
  return Layout(flags.parallel.options, 0).group_size();
}

int optimizer_states(const OptimizerOptions& optimizer) {
  if (optimizer.kind != OptimizerOptions::Kind::sgd) return 2;
  return optimizer.momentum != 0 ? 1 : 0;
}

MemoryOptions memory_options(const TrainingFlags& flags, const TrainerOptions& trainer,
                             const Layout& layout, int workers) {
  return {.batch = flags.batch_shape(layout),
          .schedule = flags.schedule_kind(),
          .recompute = trainer.stage.recompute,
          .value_bytes = static_cast<int64_t>(c10::elementSize(trainer.type)),
          .sum_bytes = static_cast<int64_t>(c10::elementSize(wide_type(trainer.type))),
          .optimizer_states = optimizer_states(trainer.optimizer),
          .boxes_ahead = static_cast<int>(LoaderOptions::kBoxesPerWorker) * workers};
}

int64_t largest_micro_batch(const BatchShape& shape) {
  size_t most = 0;
  for (const MicroBatch& batch : micro_batches(shape, 0)) most = std::max(most, batch.size());
  return static_cast<int64_t>(most);
}

}  // namespace

PlannedRun::PlannedRun(const Graph& graph, const TrainingFlags& flags, int ranks, int workers)
    : layout(flags.parallel.options, ranks == 0 ? ranks_of_one_replica(flags) : ranks),
      trainer(flags.trainer_options(graph, layout)),
      options(memory_options(flags, trainer, layout, workers)),
      plan(graph, layout.stages(), trainer.cells, largest_micro_batch(options.batch), trainer.halo),
      memory(rank_memory(plan, layout, options)) {}

std::vector<RankMemory> PlannedRun::busiest() const {
  std::vector<RankMemory> stages;
  for (int stage = 0; stage < static_cast<int>(plan.stages().size()); ++stage) {
    RankMemory& most = stages.emplace_back();
    for (const int rank : layout.stage_ranks(0, 0, stage))
      if (memory[rank].total() > most.total()) most = memory[rank];
  }
  return stages;
}

int64_t PlannedRun::most() const {
  int64_t most = 0;
  for (const RankMemory& rank : memory) most = std::max(most, rank.total());
  return most;
}

}  // namespace mpi4dl
