#pragma once

#include <memory>
#include <string>

#include "base/every.hpp"
#include "report/run_directory.hpp"
#include "train/examination.hpp"

namespace mpi4dl {

/// Evaluates a model on the images that are held out, in the course of its training. Every rank has
/// one.
class Validation {
 public:
  /// Throws UsageError where there are no images to look at. `every`: how often; "" is every epoch
  /// where images are held out, "never" is never. Collective over the world.
  Validation(const std::string& every, std::shared_ptr<const Dataset> data, const Layout& layout,
             const Trainer& trainer, ExaminationOptions options, const Communicator& world);

  /// Returns whether it is time after this step, or the run ends here.
  bool due(const StepRecord& record) const;
  /// Evaluates. Collective over the world.
  EvaluationRecord run(const StepRecord& after);
  /// Returns how many images were left out.
  int64_t left_out() const { return examination_ ? std::ssize(examination_->bad()) : 0; }

 private:
  Every every_;
  std::unique_ptr<Examination> examination_;  // null: never
};

}  // namespace mpi4dl
