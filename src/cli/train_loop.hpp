#pragma once

#include <string>
#include <vector>

#include "cli/step_log.hpp"
#include "comm/session.hpp"
#include "data/dataset.hpp"
#include "report/progress.hpp"
#include "train/checkpointing.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

struct TrainLoopOptions {
  int64_t epochs = 1;
  uint64_t seed = 1;  ///< of the order of images
  std::string json_log = {};
};

/// Trains for some epochs: chooses the images of each step, and does what follows a step. Every
/// rank has one.
class TrainLoop {
 public:
  TrainLoop(Session& session, Trainer& trainer, const Dataset& data, Checkpointing& checkpoints,
            TrainLoopOptions options);

  /// Optimizer steps of an epoch over `images`; what does not fill a batch is left out.
  static int64_t steps_of_epoch(int64_t images, int64_t effective_batch) {
    return images / effective_batch;
  }

  /// From here to the last epoch's end, or until a rank is asked to stop. Collective over the
  /// world.
  void run(Position from);
  /// The most that activations took on this rank.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void run_epoch(Position from);
  void run_step(int64_t epoch, int64_t step, const std::vector<int64_t>& samples);
  /// What follows a step: reports, evaluation, checkpoints.
  void after_step(const StepRecord& record, const StepReport& report);

  Session& session_;
  Trainer& trainer_;
  const Dataset& data_;
  Checkpointing& checkpoints_;
  TrainLoopOptions options_;
  int64_t steps_;  // of an epoch
  StepLog log_;
  Progress progress_;
  int64_t peak_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace mpi4dl
