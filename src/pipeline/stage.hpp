#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "exchange/redistribution.hpp"
#include "execute/stage_executor.hpp"
#include "pipeline/feed.hpp"
#include "pipeline/process_groups.hpp"
#include "plan/pipeline_plan.hpp"

namespace mpi4dl {

/// Says how all stages run.
struct StageOptions {
  BatchNormScope batch_norm = BatchNormScope::global;
  bool recompute = false;
};

/// Holds what a step tells every stage.
struct StepContext {
  const Feed& feed;
  uint64_t dropout_seed = 0;
  bool training = true;  ///< false: batch norm uses its running statistics, nothing is dropped
  bool backward = true;  ///< false: forward only, nothing is kept
  /// Receives the first cell whose values are not finite; null in training.
  std::optional<int>* first_bad_cell = nullptr;
};

/// Stage is this rank's part of one stage in one direction: it receives what earlier stages made,
/// runs its cells, and sends on what later ones read; and the same way back with gradients.
///
/// Receives are posted ahead, by the expect functions. Sends are not waited for: a value stays
/// where it is until its reader has it.
class Stage {
 public:
  /// Takes one plan for each size of micro-batch. Collective over the pipeline's group.
  Stage(const std::vector<PipelinePlan>& plans, const StageGroups& groups, Parameters& parameters,
        const StageOptions& options);

  /// Computes what depends on parameters alone; it comes first wherever these may have changed.
  void compute_weights() { parameters_.compute_weights(); }
  /// `number` counts the micro-batches of a step; all stages see them in the same order.
  void expect_forward(int number, const MicroBatch& images);
  void forward(int number, const MicroBatch& images, const StepContext& step);
  void expect_backward(int number);
  void backward(int number, const std::function<void(int cell)>& cell_done);

  /// Returns what this rank reads of the images of a micro-batch; empty where earlier stages read
  /// them.
  Box image_box(int64_t images) const;

  /// Returns true between forward and backward of a micro-batch.
  bool runs(int number) const { return in_flight_.contains(number); }
  /// Waits until everything that was sent has arrived.
  void finish_sending();

 private:
  /// Link is the way of a value from or to another stage.
  struct Link {
    int value;
    std::unique_ptr<Redistribution> way;
  };
  /// Holds everything for one size of micro-batch.
  struct SizePlan {
    SizePlan(const PipelinePlan& pipeline, const StageGroups& groups, const StageOptions& options);
    const StagePlan& plan;
    StageExecutor executor;
    std::vector<Link> incoming, outgoing;
  };
  struct PendingInput {
    std::map<int, Patch> values;
    std::vector<Redistribution::Flight> flights;
    std::map<int, Patch> take(const CommContext& context);
  };
  struct InFlight {
    SizePlan* size_plan;
    StageExecutor::Batch batch;
    Patch loss_gradient;
  };

  SizePlan& size_plan(int64_t images) { return *by_size_.at(images); }
  RunContext run_context(const SizePlan& here, const MicroBatch& images,
                         const StepContext& step) const;
  void send(Redistribution::Flight flight);
  void limit_sending(size_t most);

  StageGroups groups_;
  Parameters& parameters_;
  StageOptions options_;
  std::ptrdiff_t stages_ahead_ = 0;                       // behind this one
  std::map<int64_t, std::unique_ptr<SizePlan>> by_size_;  // by images of a micro-batch
  std::map<int, PendingInput> inputs_, gradients_;        // by number
  std::map<int, InFlight> in_flight_;                     // by number
  std::deque<Redistribution::Flight> sending_;
};

}  // namespace mpi4dl
