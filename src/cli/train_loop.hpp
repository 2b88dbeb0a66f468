#pragma once

#include <string>
#include <vector>

#include "cli/step_log.hpp"
#include "comm/session.hpp"
#include "data/loader.hpp"
#include "report/progress.hpp"
#include "train/checkpointing.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

struct TrainLoopOptions {
  int64_t epochs = 1;
  std::string json_log = {};
};

/// Trains for some epochs, and does what follows a step. Every rank has one.
class TrainLoop {
 public:
  TrainLoop(Session& session, Trainer& trainer, Loader& images, Checkpointing& checkpoints,
            TrainLoopOptions options);

  /// From here to the last epoch's end, or until a rank is asked to stop. Collective over the
  /// world.
  void run(Position from);
  /// The most that activations took on this rank.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void run_epoch(Position from);
  void run_step(int64_t epoch, int64_t step);
  /// What follows a step: reports, evaluation, checkpoints.
  void after_step(const StepRecord& record, const StepReport& report);

  Session& session_;
  Trainer& trainer_;
  Loader& images_;
  Checkpointing& checkpoints_;
  TrainLoopOptions options_;
  int64_t steps_;  // of an epoch
  StepLog log_;
  Progress progress_;
  int64_t peak_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace mpi4dl
