#pragma once

#include <vector>

#include "report/step_record.hpp"

namespace mpi4dl {

/// Adds up the steps of a run.
class RunTotals {
 public:
  /// Adds up the latest epoch.
  struct Epoch {
    int64_t number = 0;
    int64_t images = 0, correct = 0;
    double loss_sum = 0, seconds = 0;

    double loss() const { return loss_sum / static_cast<double>(images); }
    double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
  };

  void add(const StepRecord& record);

  int64_t steps() const { return static_cast<int64_t>(speeds_.size()); }
  const Epoch& epoch() const { return epoch_; }
  /// Returns the most memory that a rank had in use after a step.
  int64_t resident_bytes() const { return resident_bytes_; }
  /// Returns images per second without the first step, which warms up; 0 where there were none.
  double mean_speed() const;
  double median_speed() const;
  /// Returns the mean time of the latest steps.
  double recent_seconds() const;

 private:
  std::vector<double> warm_speeds() const;

  Epoch epoch_;
  std::vector<double> speeds_, seconds_;  // of each step
  int64_t resident_bytes_ = 0;
};

}  // namespace mpi4dl
