#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/bad_samples.hpp"
#include "data/batch_source.hpp"
#include "pipeline/pipeline.hpp"
#include "task/metrics.hpp"

namespace mpi4dl {

struct EvaluatorOptions {
  HaloDesign halo = {};
  std::vector<CellRange> cells = {};  ///< of each stage
  c10::ScalarType type = c10::ScalarType::Float;
  int64_t batch = 1;  ///< the most images that go through a stage together
};

/// Holds what a model says of all images of a data set.
struct Predictions {
  at::Tensor logits;       ///< images x classes, float64, the same on every rank
  int64_t peak_bytes = 0;  ///< of this rank's tensors, above what it held before

  /// Returns the logits, row by row.
  std::span<const double> values() const {
    return {logits.data_ptr<double>(), static_cast<size_t>(logits.numel())};
  }
};

/// Runs a model forward only: running statistics of batch norm, no dropout, nothing kept.
///
/// Replicas share the images. Each sends its own through the pipeline in micro-batches of about the
/// same size, whatever their number, in direction 0. Images do not influence each other, so results
/// do not depend on who is in a micro-batch with whom.
class Evaluator {
 public:
  /// Takes the parameters of each stage that this rank holds, as in training; they may change
  /// between runs. Collective over the world, as is each call below.
  Evaluator(const Graph& graph, const Layout& layout, const ProcessGroups& groups,
            const StageParameters& parameters, const EvaluatorOptions& options, int64_t images,
            const Communicator& world);

  /// Runs all images, in their order. Throws Error where a logit is not finite.
  Predictions run(BatchSource& images);

 private:
  int64_t images_, classes_;
  c10::ScalarType type_;
  Communicator world_;
  std::vector<MicroBatch> batches_;
  Schedule schedule_;
  std::unique_ptr<Pipeline> pipeline_;
};

/// Throws UsageError unless a model tells classes: its output has spatial axes.
void check_classifier(const Graph& graph);

/// Says how well these predictions of the data set's images fit their labels; bad ones do not
/// count.
Metrics measure(const Predictions& predictions, const Dataset& data, const BadSamples& bad = {});

}  // namespace mpi4dl
