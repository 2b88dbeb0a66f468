#include "cli/train_loop.hpp"

#include <fmt/format.h>

#include "base/stopwatch.hpp"
#include "data/sampler.hpp"

namespace mpi4dl {
TrainLoop::TrainLoop(Session& session, Trainer& trainer, const Dataset& data,
                     Validation& validation, Reports& reports, const TrainLoopOptions& options)
    : session_(session),
      trainer_(trainer),
      data_(data),
      options_(options),
      steps_(steps_of_epoch(data.size(), trainer.effective_batch())),
      validation_(validation),
      reports_(reports) {}

void TrainLoop::run() {
  Position position = start();
  for (; position.epoch <= options_.epochs; position = {position.epoch + 1, 0}) run_epoch(position);
  reports_.end_run();
}

void TrainLoop::run_epoch(Position from) {
  const std::vector<int64_t> order = shuffled(data_.size(), options_.seed, from.epoch);
  const int64_t batch = trainer_.effective_batch();
  for (int64_t step = from.step + 1; step <= steps_; ++step) {
    const auto first = order.begin() + (step - 1) * batch;
    run_step(from.epoch, step, {first, first + batch});
  }
}

void TrainLoop::run_step(int64_t epoch, int64_t step, const std::vector<int64_t>& samples) {
  session_.doing(fmt::format("training, epoch {} step {}", epoch, step));
  const Stopwatch watch;
  SampleBatch images(data_, samples);
  const StepReport report = trainer_.step(images);
  after_step({.epoch = epoch,
              .epochs = options_.epochs,
              .step = step,
              .steps = steps_,
              .loss = report.loss,
              .correct = report.correct,
              .images = report.images,
              .seconds = watch.seconds(),
              .learning_rate = report.learning_rate},
             report);
}

void TrainLoop::after_step(const StepRecord& record, const StepReport& report) {
  reports_.step(record, report);
  if (record.step == record.steps) reports_.end_epoch();
  if (!validation_.due(record)) return;
  session_.doing(fmt::format("evaluating after epoch {} step {}", record.epoch, record.step));
  reports_.evaluation(validation_.run(record));
}

}  // namespace mpi4dl
