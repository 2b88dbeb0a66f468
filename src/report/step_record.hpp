#pragma once

#include <cstdint>

namespace mpi4dl {

/// Holds what a training run says of one optimizer step.
struct StepRecord {
  int64_t epoch = 1, epochs = 1;
  int64_t step = 1, steps = 1;  ///< in the epoch
  double loss = 0;
  int64_t correct = 0, images = 0;
  double seconds = 0;
  double learning_rate = 0;
  int64_t resident_bytes = 0;  ///< memory in use after the step, of the rank that has most

  /// Counts the steps of the run so far, this one included.
  int64_t total_step() const { return (epoch - 1) * steps + step; }
  int64_t total_steps() const { return epochs * steps; }
  double images_per_second() const { return static_cast<double>(images) / seconds; }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
};

}  // namespace mpi4dl
