#include "pipeline/pipeline.hpp"

#include <set>

namespace mpi4dl {

Pipeline::Pipeline(std::vector<PipelinePlan> plans, const ProcessGroups& groups,
                   const StageParameters& parameters, const StageOptions& options)
    : plans_(std::move(plans)) {
  for (const StageGroups& direction : groups.directions()) {
    stage_of_.push_back(direction.role.stage);
    stages_.push_back(
        std::make_unique<Stage>(plans_, direction, *parameters.at(direction.role.stage), options));
  }
}

void Pipeline::run(const Schedule& schedule, const std::vector<MicroBatch>& batches,
                   const StepContext& step, const GradientsReady& ready) {
  const std::vector<bool> last = last_backwards(schedule);
  for (auto& stage : stages_) stage->compute_weights();
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[i];
    expect(action, batches);
    if (i + 1 < schedule.size()) expect(schedule[i + 1], batches);
    Stage& stage = *stages_[action.direction];
    if (action.kind == Action::Kind::forward) {
      stage.forward(action.batch, batches[action.batch], step);
      continue;
    }
    const int which = stage_of_[action.direction];
    std::function<void(int)> cell_done;
    if (last[i]) cell_done = [&](int cell) { ready(which, cell); };
    stage.backward(action.batch, cell_done);
  }
  for (auto& stage : stages_) stage->finish_sending();
}

void Pipeline::run_forward(const Schedule& schedule, const std::vector<MicroBatch>& batches,
                           StepContext step) {
  step.backward = false;
  run(forwards(schedule), batches, step, {});
}

/// Posts the receives of an action, in the order of the schedule, which is the order of the
/// senders. A batch that has not gone forward yet expects no gradients.
void Pipeline::expect(const Action& action, const std::vector<MicroBatch>& batches) {
  Stage& stage = *stages_[action.direction];
  if (action.kind == Action::Kind::forward) {
    stage.expect_forward(action.batch, batches[action.batch]);
  } else if (stage.runs(action.batch)) {
    stage.expect_backward(action.batch);
  }
}

/// Says which actions are the last backward through a stage; both directions may share one.
std::vector<bool> Pipeline::last_backwards(const Schedule& schedule) const {
  std::vector<bool> last(schedule.size(), false);
  std::set<int> seen;
  for (size_t i = schedule.size(); i-- > 0;)
    if (schedule[i].kind == Action::Kind::backward)
      last[i] = seen.insert(stage_of_[schedule[i].direction]).second;
  return last;
}

Box Pipeline::image_box(int direction, int64_t images) const {
  return stages_[direction]->image_box(images);
}

std::optional<int> Pipeline::find_bad_cell(const Schedule& schedule,
                                           const std::vector<MicroBatch>& batches,
                                           StepContext step) {
  std::optional<int> bad;
  step.first_bad_cell = &bad;
  run_forward(schedule, batches, step);
  return bad;
}

}  // namespace mpi4dl
