#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "base/stopwatch.hpp"
#include "report/run_totals.hpp"
#include "task/metrics.hpp"

namespace mpi4dl {

/// Tells a person how training goes: a bar that moves on a terminal, ten times a second at most; a
/// line a step elsewhere.
class Progress {
 public:
  explicit Progress(std::FILE* out);

  void step(const StepRecord& record);
  /// Tells of an evaluation between two steps, or after the last one.
  void evaluation(const Metrics& metrics, double seconds);
  /// Sums up an epoch after its last step.
  void end_epoch();
  /// Sums up the run after its last epoch: speed without the first step, which warms up.
  void end_run();

  const RunTotals& totals() const { return totals_; }

 private:
  void clear_bar();
  void draw_bar(const StepRecord& record);

  std::FILE* out_;
  bool terminal_;
  RunTotals totals_;
  std::optional<Stopwatch> since_bar_;  ///< none is shown
};

/// Returns a bar of this step's epoch, with loss, speed, time left in the run and memory, in at
/// most `width` characters.
std::string progress_bar(const StepRecord& record, double seconds_a_step, size_t width);

}  // namespace mpi4dl
