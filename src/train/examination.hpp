#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/readable_batch.hpp"
#include "data/subset.hpp"
#include "train/evaluator.hpp"

namespace mpi4dl {

struct ExaminationOptions {
  EvaluatorOptions evaluator = {};
  bool skip_bad_images = false;  ///< leave them out, instead of failing
  BadSamples bad = {};           ///< known before, to be left out
  /// Hears on the first rank of images that turn out to be bad.
  std::function<void(const std::string& sentence)> warn = [](const std::string&) {};
};

/// Asks a model about all images of a data set, as often as one likes while it learns. Images that
/// cannot be read are left out, if one wants that: all ranks agree on them, and they count nowhere.
/// Every rank has one.
class Examination {
 public:
  /// Takes what Evaluator does. Throws Error where no image is left. Collective over the world, as
  /// is run.
  Examination(std::shared_ptr<const Dataset> data, const Graph& graph, const Layout& layout,
              const ProcessGroups& groups, const StageParameters& parameters,
              ExaminationOptions options, const Communicator& world);

  /// Returns one row for each image of the data set; those of bad ones mean nothing.
  Predictions run();

  const Dataset& data() const { return *data_; }
  /// Returns the images that have turned out to be bad so far, the same on every rank.
  const BadSamples& bad() const { return options_.bad; }

 private:
  void check_some_left() const;

  std::shared_ptr<const Dataset> data_;
  ExaminationOptions options_;
  Communicator world_;
  std::vector<int64_t> samples_;  // of the data set, that are not known to be bad at the start
  std::unique_ptr<Subset> images_;
  std::unique_ptr<ReadableBatch> readable_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace mpi4dl
