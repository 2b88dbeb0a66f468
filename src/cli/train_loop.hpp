#pragma once

#include "cli/stopping.hpp"
#include "cli/validation.hpp"
#include "comm/session.hpp"
#include "data/loader.hpp"
#include "report/run_reports.hpp"
#include "train/checkpointing.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Holds what follows a step.
struct AfterStep {
  Checkpointing& checkpoints;
  Validation& validation;
  RunReports& reports;
};

/// Trains for some epochs, and does what follows a step. Every rank has one.
class TrainLoop {
 public:
  TrainLoop(Session& session, Trainer& trainer, Loader& images, AfterStep after,
            const Stopping& stopping, int64_t epochs);

  /// Trains from here to the last epoch's end, or until a rank is asked to stop. Collective over
  /// the world.
  void run(Position from);
  /// Returns whether it stopped early because a rank was asked to; the same on all ranks.
  bool stopped() const { return stopped_; }

 private:
  void run_epoch(Position from);
  void run_step(int64_t epoch, int64_t step);
  void after_step(const StepRecord& record, const StepReport& report);
  void save(const StepRecord& record);

  Session& session_;
  Trainer& trainer_;
  Loader& images_;
  AfterStep after_;
  const Stopping& stopping_;
  int64_t epochs_;
  int64_t steps_;  // of an epoch
  bool stopped_ = false;
};

}  // namespace mpi4dl
