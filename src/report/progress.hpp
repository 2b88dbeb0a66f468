#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace mpi4dl {

/// What a training run says of one optimizer step.
struct StepRecord {
  int64_t epoch = 1, epochs = 1;
  int64_t step = 1, steps = 1;  ///< in the epoch
  double loss = 0;
  int64_t correct = 0, images = 0;
  double seconds = 0;
  double learning_rate = 0;

  double images_per_second() const { return static_cast<double>(images) / seconds; }
};

/// Tells a person how training goes: a bar that moves on a terminal, a line a step elsewhere.
class Progress {
 public:
  explicit Progress(std::FILE* out);

  void step(const StepRecord& record);
  /// After the last step of an epoch.
  void end_epoch();
  /// After the last epoch: speed without the first step, which warms up.
  void end_run();

 private:
  void clear_bar();

  std::FILE* out_;
  bool terminal_;
  std::vector<StepRecord> epoch_;
  std::vector<double> speeds_;  // of all steps, images per second
};

}  // namespace mpi4dl
