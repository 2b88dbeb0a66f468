#include "cli/validation.hpp"

#include "base/error.hpp"
#include "base/stopwatch.hpp"

namespace mpi4dl {
namespace {

Every parse_interval(const std::string& text, bool held_out) {
  if (text == "never" || (text.empty() && !held_out)) return {};
  validate(held_out,
           "--eval-every {} needs images that are held out, but all are trained on; hold some out, "
           "for example with --val-fraction 0.2",
           text);
  return parse_every("--eval-every", text.empty() ? "1epoch" : text);
}

}  // namespace

Validation::Validation(const std::string& every, std::shared_ptr<const Dataset> data,
                       const Layout& layout, const Trainer& trainer,
                       const EvaluatorOptions& options, const Communicator& world)
    : every_(parse_interval(every, data != nullptr)), data_(std::move(data)) {
  if (every_.count == 0) return;
  evaluator_ = std::make_unique<Evaluator>(trainer.graph(), layout, trainer.team(),
                                           trainer.parameters(), options, data_->size(), world);
}

bool Validation::due(const StepRecord& record) const {
  return evaluator_ && (every_.due(record.epoch, record.step, record.steps) ||
                        record.total_step() == record.total_steps());
}

EvaluationRecord Validation::run(const StepRecord& after) {
  const Stopwatch watch;
  EvaluationRecord record{.epoch = after.epoch, .total_step = after.total_step()};
  SampleBatch images = all_samples(*data_);
  record.metrics = measure(evaluator_->run(images), *data_);
  record.seconds = watch.seconds();
  return record;
}

}  // namespace mpi4dl
