#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "data/batch_source.hpp"
#include "pipeline/pipeline.hpp"
#include "train/collected_logits.hpp"
#include "train/gradient_reduction.hpp"
#include "train/learning_rate.hpp"
#include "train/optimizer.hpp"
#include "train/sharded_update.hpp"
#include "train/work.hpp"

namespace mpi4dl {

struct TrainerOptions {
  HaloDesign halo = {};
  std::vector<CellRange> cells = {};  ///< one range for each stage
  StageOptions stage = {};
  c10::ScalarType type = c10::ScalarType::Float;
  uint64_t seed = 1;
  OptimizerOptions optimizer = {};
  LearningRate learning_rate = {};
  double clip_norm = 0;  ///< gradients are clipped to this norm; 0: never
  GradientReduction::Options reduction = {};
  /// Tells whether training should end after a step. It is asked on every rank once a step, unless
  /// it is empty.
  std::function<bool()> stop_requested = {};
};

/// Reports one optimizer step.
struct StepReport {
  double loss = 0;      ///< mean over the effective batch
  int64_t correct = 0;  ///< images whose largest logit is their class, of a classifier
  int64_t images = 0;
  double learning_rate = 0;
  at::Tensor logits;       ///< of a classifier: one row an image; zero where another rank has them
  Traffic sent;            ///< by this rank's exchanges
  int64_t peak_bytes = 0;  ///< tensors of this rank, above what it held before
  bool stop = false;       ///< some rank was asked to stop; the same on all ranks
};

/// Trains a model that is spread over ranks: every rank has one, with its own share. The loss is
/// the cross-entropy of a classifier; of a model whose output has spatial axes, half the mean
/// square.
class Trainer {
 public:
  /// Prepares a first step. Collective over the world, as is each call below.
  Trainer(const Graph& graph, const Layout& layout, Work work, const TrainerOptions& options,
          const Communicator& world);

  /// Does one optimizer step. Throws Error, naming the cell, where the loss is not finite.
  StepReport step(BatchSource& images);

  /// Returns what this rank reads of the images in every step, in this order; nothing on most
  /// ranks.
  std::vector<Reading> readings() const;
  int64_t effective_batch() const { return work_.effective_batch; }
  /// Returns the parameters of each stage that this rank holds. Sums of gradients may be complete
  /// in its shard only.
  const StageParameters& parameters() const { return parameters_; }
  /// Completes the gradients of the last step.
  void gather_gradients() const;
  /// Counts the optimizer steps done.
  int64_t steps() const { return steps_; }
  const Graph& graph() const { return graph_; }
  /// Returns the cells of each stage.
  const std::vector<CellRange>& cells() const { return options_.cells; }
  /// Returns this rank's communicators.
  const ProcessGroups& groups() const { return groups_; }
  /// Returns all that later steps depend on, of each stage that this rank holds, sharing memory:
  /// parameters with all their digits, statistics, and the state of the optimizer.
  std::map<int, TensorMap> state() const;
  /// Takes over what was written into state(), as it is after so many steps.
  void restore(int64_t step);
  /// Returns true if all ranks of a data-parallel group have the same parameters, frozen ones
  /// too, and statistics, to the bit.
  bool replicas_agree() const;

 private:
  /// Holds what the last stage has computed in a step, where it was computed.
  struct LastStage {
    at::Tensor sums = {};  // of the loss and of what is right: float64
    CollectedLogits logits = {};
    void add(const at::Tensor& loss, const at::Tensor& correct);
  };
  bool classifies() const;
  at::Tensor classification_gradient(const BatchSource& images, const MicroBatch& batch,
                                     const Patch& logits, LastStage& last) const;
  at::Tensor pixelwise_gradient(const Patch& output, LastStage& last) const;
  Feed make_feed(BatchSource& images, LastStage& last);
  void add_up(StepReport& report, const LastStage& last) const;
  void stop_if_not_finite(const StepReport& report, const StepContext& step);

  const Graph& graph_;
  Communicator world_;
  ProcessGroups groups_;
  Work work_;
  TrainerOptions options_;
  StageParameters parameters_;
  // By stage:
  std::map<int, ShardedUpdate> updates_;
  std::map<int, std::unique_ptr<Optimizer>> optimizers_;
  std::unique_ptr<Pipeline> pipeline_;
  int64_t steps_ = 0;
};

}  // namespace mpi4dl
