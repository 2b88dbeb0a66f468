#pragma once

#include <vector>

#include "cli/reports.hpp"
#include "cli/validation.hpp"
#include "comm/session.hpp"
#include "data/dataset.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

struct TrainLoopOptions {
  int64_t epochs = 1;
  uint64_t seed = 1;  ///< of the order of images
};

/// Trains for some epochs: chooses the images of each step, and does what follows a step. Every
/// rank has one.
class TrainLoop {
 public:
  TrainLoop(Session& session, Trainer& trainer, const Dataset& data, Validation& validation,
            Reports& reports, const TrainLoopOptions& options);

  /// Optimizer steps of an epoch over `images`; what does not fill a batch is left out.
  static int64_t steps_of_epoch(int64_t images, int64_t effective_batch) {
    return images / effective_batch;
  }

  /// From the start position to the last epoch's end. Collective over the world.
  void run();

 private:
  /// Where the run goes on: after `step` steps of `epoch`.
  struct Position {
    int64_t epoch = 1;
    int64_t step = 0;
  };
  Position start() const { return {}; }
  void run_epoch(Position from);
  void run_step(int64_t epoch, int64_t step, const std::vector<int64_t>& samples);
  /// What follows a step: reports, evaluation, checkpoints.
  void after_step(const StepRecord& record, const StepReport& report);

  Session& session_;
  Trainer& trainer_;
  const Dataset& data_;
  TrainLoopOptions options_;
  int64_t steps_;  // of an epoch
  Validation& validation_;
  Reports& reports_;
};

}  // namespace mpi4dl
