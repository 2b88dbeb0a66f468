#pragma once

#include <cstdio>
#include <string>

#include "report/run_totals.hpp"
#include "train/metrics.hpp"

namespace mpi4dl {

/// Tells a person how training goes: a bar that moves on a terminal, a line a step elsewhere.
class Progress {
 public:
  explicit Progress(std::FILE* out);

  void step(const StepRecord& record);
  /// Between two steps, or after the last one.
  void evaluation(const Metrics& metrics, double seconds);
  /// After the last step of an epoch.
  void end_epoch();
  /// After the last epoch: speed without the first step, which warms up.
  void end_run();

  const RunTotals& totals() const { return totals_; }

 private:
  void clear_bar();

  std::FILE* out_;
  bool terminal_;
  RunTotals totals_;
};

/// A bar of this step's epoch, with loss, speed, time left in the run and memory, in at most
/// `width` characters.
std::string progress_bar(const StepRecord& record, double seconds_a_step, size_t width);

}  // namespace mpi4dl
