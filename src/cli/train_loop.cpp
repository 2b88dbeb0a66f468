#include "cli/train_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "data/sampler.hpp"

namespace mpi4dl {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TrainLoop::TrainLoop(Session& session, Trainer& trainer, const Dataset& data,
                     Checkpointing& checkpoints, TrainLoopOptions options)
    : session_(session),
      trainer_(trainer),
      data_(data),
      checkpoints_(checkpoints),
      options_(std::move(options)),
      steps_(steps_of_epoch(data.size(), trainer.effective_batch())),
      log_(options_.json_log, session.first()),
      progress_(stdout) {}

void TrainLoop::run(Position from) {
  for (; from.epoch <= options_.epochs && !stopped_; from = {from.epoch + 1, 0}) run_epoch(from);
  if (!session_.first()) return;
  progress_.end_run();
  if (stopped_)
    fmt::print("stopped by a signal; {} has everything up to here\n",
               checkpoints_.path(trainer_.steps()));
}

void TrainLoop::run_epoch(Position from) {
  const std::vector<int64_t> order = shuffled(data_.size(), options_.seed, from.epoch);
  const int64_t batch = trainer_.effective_batch();
  for (int64_t step = from.step + 1; step <= steps_ && !stopped_; ++step) {
    const auto first = order.begin() + (step - 1) * batch;
    run_step(from.epoch, step, {first, first + batch});
  }
  if (session_.first()) progress_.end_epoch();
}

void TrainLoop::run_step(int64_t epoch, int64_t step, const std::vector<int64_t>& samples) {
  session_.doing(fmt::format("training, epoch {} step {}", epoch, step));
  const auto start = std::chrono::steady_clock::now();
  SampleBatch images(data_, samples);
  const StepReport report = trainer_.step(images);
  after_step({.epoch = epoch,
              .epochs = options_.epochs,
              .step = step,
              .steps = steps_,
              .loss = report.loss,
              .correct = report.correct,
              .images = report.images,
              .seconds = seconds_since(start),
              .learning_rate = report.learning_rate},
             report);
}

void TrainLoop::after_step(const StepRecord& record, const StepReport& report) {
  peak_bytes_ = std::max(peak_bytes_, report.peak_bytes);
  if (session_.first()) progress_.step(record);
  log_.write(record, report, session_.world());
  stopped_ = report.stop;
  const bool end = record.epoch == record.epochs && record.step == record.steps;
  checkpoints_.after_step(trainer_, {record.epoch, record.step}, steps_, end || stopped_);
}

}  // namespace mpi4dl
