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
                       const Layout& layout, const Trainer& trainer, ExaminationOptions options,
                       const Communicator& world)
    : every_(parse_interval(every, data != nullptr)) {
  if (every_.count == 0) return;
  examination_ =
      std::make_unique<Examination>(std::move(data), trainer.graph(), layout, trainer.groups(),
                                    trainer.parameters(), std::move(options), world);
}

bool Validation::due(const StepRecord& record) const {
  return examination_ && (every_.due(record.epoch, record.step, record.steps) ||
                          record.total_step() == record.total_steps());
}

EvaluationRecord Validation::run(const StepRecord& after) {
  const Stopwatch watch;
  EvaluationRecord record{.epoch = after.epoch, .total_step = after.total_step()};
  const Predictions found = examination_->run();
  record.metrics = measure(found, examination_->data(), examination_->bad());
  record.seconds = watch.seconds();
  return record;
}

}  // namespace mpi4dl
