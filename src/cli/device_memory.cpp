#include "cli/device_memory.hpp"

#include "backend/backend.hpp"
#include "backend/device_errors.hpp"
#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "cli/planned_run.hpp"

namespace mpi4dl {

int with_planned_memory(const Session& session, const std::function<Graph()>& model,
                        const TrainingFlags& flags, const std::function<int()>& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    const Graph graph = flags.tuning.frozen(model());
    const PlannedRun planned =
        plan_run(graph, flags, session.world().size(), /*workers=*/0, place_of(session));
    throw Error(fmt::format(
        "{}, where the plan expected {} for the rank that needs most; "
        "raise --split-size, --spatial-size or --num-spatial-parts{}: mpi4dl plan --on-device "
        "--memory says what would fit",
        no_memory_left(error, session.world().context().backend->device()),
        readable_bytes(planned.most()),
        flags.trainer.stage.recompute ? "" : ", or give --recompute"));
  }
}

}  // namespace mpi4dl
