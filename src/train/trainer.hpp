#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "data/batch_source.hpp"
#include "pipeline/pipeline.hpp"
#include "train/gradient_reduction.hpp"
#include "train/learning_rate.hpp"
#include "train/optimizer.hpp"
#include "train/work.hpp"

namespace mpi4dl {

struct TrainerOptions {
  HaloDesign halo = {};
  std::vector<CellRange> cells = {};  ///< of each stage
  StageOptions stage = {};
  c10::ScalarType type = c10::ScalarType::Float;
  uint64_t seed = 1;
  OptimizerOptions optimizer = {};
  LearningRate learning_rate = {};
  double clip_norm = 0;  ///< gradients longer than this are shortened to it; 0: never
  GradientReduction::Options reduction = {};
  /// Asked on every rank once a step, whether training should end after it; never if empty.
  std::function<bool()> stop_requested = {};
};

/// What one optimizer step says about itself.
struct StepReport {
  double loss = 0;      ///< mean over the effective batch
  int64_t correct = 0;  ///< images whose largest logit is their class
  int64_t images = 0;
  double learning_rate = 0;
  at::Tensor logits;       ///< of the effective batch; zero where another rank has them
  Traffic sent;            ///< by this rank's exchanges
  int64_t peak_bytes = 0;  ///< of this rank's tensors, above what it held before
  bool stop = false;       ///< some rank was asked to stop; the same on all ranks
};

/// Trains a model that is spread over ranks: every rank has one, with its own share.
class Trainer {
 public:
  /// Collective over the world, as is each call below.
  Trainer(const Graph& graph, const Layout& layout, Work work, const TrainerOptions& options,
          const Communicator& world);

  /// One optimizer step. Throws Error, naming the cell, where the loss is not finite.
  StepReport step(BatchSource& images);

  /// What this rank reads of the images in every step, in this order; nothing on most ranks.
  std::vector<Reading> readings() const;
  int64_t effective_batch() const { return work_.effective_batch; }
  /// Of each stage that this rank holds. Of gradients it may have complete sums of a slice only.
  const StageParameters& parameters() const { return parameters_; }
  /// Completes the gradients of the last step.
  void gather_gradients() const;
  /// Optimizer steps done.
  int64_t steps() const { return steps_; }
  const Graph& graph() const { return graph_; }
  /// This rank's communicators.
  const Team& team() const { return team_; }
  /// All that later steps depend on, of each stage that this rank holds, sharing memory: parameters
  /// with all their digits, statistics, and what the optimizer remembers.
  std::map<int, TensorMap> state() const;
  /// Goes on with what was written into state(), as if so many steps were done.
  void go_on(int64_t steps);
  /// True if all ranks that hold a parameter or a statistic have the same value, to the bit.
  bool holders_agree() const;

 private:
  Feed make_feed(BatchSource& images, StepReport& report);
  void add_up(StepReport& report) const;
  void stop_if_not_finite(const StepReport& report, const StepContext& step);
  double clipping_scale(const std::map<int, GradientReduction>& reductions) const;
  bool sliced(int stage) const;

  const Graph& graph_;
  Communicator world_;
  Team team_;
  Work work_;
  TrainerOptions options_;
  StageParameters parameters_;
  std::map<int, std::unique_ptr<Optimizer>> optimizers_;
  std::unique_ptr<Pipeline> pipeline_;
  int64_t steps_ = 0;
};

}  // namespace mpi4dl
