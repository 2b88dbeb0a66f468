#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "layout/layout.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_parameters.hpp"
#include "simulate/schedule.hpp"

namespace mpi4dl {

/// The last backward of a step calls it when the gradients of a cell are complete on this rank:
/// their sum over ranks can start while earlier cells still compute.
using GradientsReady = std::function<void(int stage, int cell)>;

/// Runs any schedule on this rank's stages, one for each direction.
class Pipeline {
 public:
  /// Takes the parameters of each stage that this rank holds. Collective over the world.
  Pipeline(std::vector<PipelinePlan> plans, const ProcessGroups& groups,
           const StageParameters& parameters, const StageOptions& options);

  /// Runs a schedule. Collective over the replica, as is each call below.
  void run(const Schedule& schedule, const std::vector<MicroBatch>& batches,
           const StepContext& step, const GradientsReady& ready);

  /// Goes through the forwards of a schedule only, and keeps nothing.
  void run_forward(const Schedule& schedule, const std::vector<MicroBatch>& batches,
                   StepContext step);

  /// Goes forward only, to find the first cell whose values are not finite; none if all are.
  std::optional<int> find_bad_cell(const Schedule& schedule, const std::vector<MicroBatch>& batches,
                                   StepContext step);

  /// Returns what this rank's stage of a direction reads of a micro-batch's images; empty if
  /// nothing.
  Box image_box(int direction, int64_t images) const;

 private:
  void expect(const Action& action, const std::vector<MicroBatch>& batches);
  std::vector<bool> last_backwards(const Schedule& schedule) const;

  std::vector<PipelinePlan> plans_;
  std::vector<int> stage_of_;                   // by direction
  std::vector<std::unique_ptr<Stage>> stages_;  // by direction
};

}  // namespace mpi4dl
