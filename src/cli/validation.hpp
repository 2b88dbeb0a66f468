#pragma once

#include <memory>
#include <string>

#include "cli/run_directory.hpp"
#include "train/every.hpp"
#include "train/examination.hpp"

namespace mpi4dl {

/// The images that are held out, and how well a model knows them in the course of its training.
/// Every rank has one.
class Validation {
 public:
  /// `every`: how often; "" is every epoch where images are held out, "never" is never. Throws
  /// UsageError where there are none to look at. Collective over the world.
  Validation(const std::string& every, std::shared_ptr<const Dataset> data, const Layout& layout,
             const Trainer& trainer, ExaminationOptions options, const Communicator& world);

  /// After this step: it is time, or the run ends here.
  bool due(const StepRecord& record) const;
  /// Collective over the world.
  EvaluationRecord run(const StepRecord& after);
  /// Images that were left out.
  int64_t left_out() const { return examination_ ? std::ssize(examination_->bad()) : 0; }

 private:
  Every every_;
  std::unique_ptr<Examination> examination_;  // null: never
};

}  // namespace mpi4dl
