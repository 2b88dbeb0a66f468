#include "cli/train_loop.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/stopwatch.hpp"

namespace mpi4dl {

TrainLoop::TrainLoop(Session& session, Trainer& trainer, Loader& images, AfterStep after,
                     const Stopping& stopping, int64_t epochs)
    : session_(session),
      trainer_(trainer),
      images_(images),
      after_(after),
      stopping_(stopping),
      epochs_(epochs),
      steps_(images.steps_of_epoch()) {}

void TrainLoop::run(Position from) {
  if (from.epoch > epochs_ && session_.first())
    fmt::print("all is done already that --num-epochs {} asks for; with more epochs it goes on\n",
               epochs_);
  for (; from.epoch <= epochs_ && !stopped_; from = {from.epoch + 1, 0}) run_epoch(from);
  after_.reports.end_run();
  if (!stopped_ || !session_.first()) return;
  // A launcher that is about to kill this process may drop what waits in standard output.
  fmt::print(stderr, "stopped by a signal; {} has everything up to here\n",
             after_.checkpoints.path(trainer_.steps()));
}

void TrainLoop::run_epoch(Position from) {
  for (int64_t step = from.step + 1; step <= steps_ && !stopped_; ++step)
    run_step(from.epoch, step);
}

void TrainLoop::run_step(int64_t epoch, int64_t step) {
  session_.doing(fmt::format("training, epoch {} step {}", epoch, step));
  const Stopwatch watch;
  images_.load({epoch, step});
  const StepReport report = trainer_.step(images_);
  after_step({.epoch = epoch,
              .epochs = epochs_,
              .step = step,
              .steps = steps_,
              .loss = report.loss,
              .correct = report.correct,
              .images = report.images,
              .seconds = watch.seconds(),
              .learning_rate = report.learning_rate},
             report);
}

/// Saves first where the run is asked to stop, for it has little time, and does nothing after it.
void TrainLoop::after_step(const StepRecord& record, const StepReport& report) {
  stopped_ = report.stop;
  after_.reports.step(record, report);
  if (record.step == record.steps) after_.reports.end_epoch();
  save(record);
  if (stopped_ || !after_.validation.due(record)) return;
  session_.doing(fmt::format("evaluating after epoch {} step {}", record.epoch, record.step));
  after_.reports.evaluation(after_.validation.run(record));
  stopped_ = stopping_.agreed();
  if (stopped_) save(record);
}

void TrainLoop::save(const StepRecord& record) {
  const bool end = record.epoch == record.epochs && record.step == record.steps;
  after_.checkpoints.after_step(trainer_, {{record.epoch, record.step}, images_.left_out()}, steps_,
                                end || stopped_);
}

}  // namespace mpi4dl
