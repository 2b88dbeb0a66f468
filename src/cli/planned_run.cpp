#include "cli/planned_run.hpp"

#include <c10/core/ScalarType.h>

#include "backend/backend.hpp"
#include "backend/precision.hpp"
#include "data/loader.hpp"

namespace mpi4dl {
namespace {

int optimizer_states(const OptimizerOptions& optimizer) {
  if (optimizer.kind != OptimizerOptions::Kind::sgd) return 2;
  return optimizer.momentum != 0 ? 1 : 0;
}

}  // namespace

PlannedPlace place_of(const Session& session) {
  const Backend& backend = *session.world().context().backend;
  return {.kernels = backend.name() == "cpu" ? Kernels::own : Kernels::composed,
          .on_device = !backend.on_host()};
}

PlannedRun plan_run(const Graph& graph, const TrainingFlags& flags, int ranks, int workers,
                    const PlannedPlace& place) {
  const ParallelOptions& parallel = flags.parallel.options;
  const Layout layout(parallel, ranks == 0 ? Layout(parallel, 0).group_size() : ranks);
  const TrainerOptions trainer = flags.trainer_options(graph, layout);
  return {graph,
          layout,
          trainer.cells,
          trainer.halo,
          {.batch = flags.batch_shape(layout),
           .schedule = flags.schedule_kind(),
           .recompute = trainer.stage.recompute,
           .value_bytes = static_cast<int64_t>(c10::elementSize(trainer.type)),
           .sum_bytes = static_cast<int64_t>(c10::elementSize(wide_type(trainer.type))),
           .optimizer_states = optimizer_states(trainer.optimizer),
           .boxes_ahead = static_cast<int>(LoaderOptions::kBoxesPerWorker) * workers,
           .kernels = place.kernels,
           .on_device = place.on_device}};
}

}  // namespace mpi4dl
