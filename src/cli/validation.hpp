#pragma once

#include <memory>
#include <string>

#include "cli/run_directory.hpp"
#include "train/evaluator.hpp"
#include "train/every.hpp"

namespace mpi4dl {

/// The images that are held out, and how well a model knows them in the course of its training.
/// Every rank has one.
class Validation {
 public:
  /// `every`: how often; "" is every epoch where images are held out, "never" is never. Throws
  /// UsageError where there are none to look at. Collective over the world.
  Validation(const std::string& every, std::shared_ptr<const Dataset> data, const Layout& layout,
             const Trainer& trainer, const EvaluatorOptions& options, const Communicator& world);

  /// After this step: it is time, or the run ends here.
  bool due(const StepRecord& record) const;
  /// Collective over the world.
  EvaluationRecord run(const StepRecord& after);

 private:
  Every every_;
  std::shared_ptr<const Dataset> data_;
  std::unique_ptr<Evaluator> evaluator_;  // null: never
};

}  // namespace mpi4dl
