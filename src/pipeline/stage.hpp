#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "exchange/redistribution.hpp"
#include "ops/stage_runner.hpp"
#include "pipeline/feed.hpp"
#include "pipeline/team.hpp"
#include "plan/pipeline_plan.hpp"

namespace mpi4dl {

/// How all stages run.
struct StageOptions {
  BatchNormScope batch_norm = BatchNormScope::global;
  bool recompute = false;
};

/// What a step tells every stage.
struct StepContext {
  const Feed& feed;
  uint64_t dropout_seed = 0;
  bool training = true;  ///< false: batch norm uses its running statistics, nothing is dropped
  bool backward = true;  ///< false: forward only, nothing is kept
  /// Where an inspection notes the first cell whose values are not finite; null in training.
  std::optional<int>* first_bad_cell = nullptr;
};

/// This rank's part of one stage in one direction: it receives what earlier stages made, runs its
/// cells, and sends on what later ones read; and the same way back with gradients.
///
/// Receives are posted ahead, by the expect functions. Sends are not waited for: a value stays
/// where it is until its reader has it.
class Stage {
 public:
  /// One plan for each size of micro-batch. Collective over the crew's group.
  Stage(const std::vector<PipelinePlan>& plans, const Crew& crew, Parameters& parameters,
        const StageOptions& options);

  /// `number` counts the micro-batches of a step; all stages see them in the same order.
  void expect_forward(int number, const MicroBatch& images);
  void forward(int number, const MicroBatch& images, const StepContext& step);
  void expect_backward(int number);
  void backward(int number, const std::function<void(int cell)>& cell_done);

  /// What this rank reads of the images of a micro-batch; empty where earlier stages read them.
  Box image_box(int64_t images) const;

  /// True between forward and backward of a micro-batch.
  bool runs(int number) const { return live_.contains(number); }
  /// Waits until everything that was sent has arrived.
  void finish_sending();

 private:
  /// A value on its way from or to another stage.
  struct Link {
    int value;
    std::unique_ptr<Redistribution> way;
  };
  /// Everything for one size of micro-batch.
  struct Sized {
    Sized(const PipelinePlan& pipeline, const Crew& crew, const StageOptions& options);
    const StagePlan& plan;
    StageRunner runner;
    std::vector<Link> incoming, outgoing;
  };
  struct Arrival {
    std::map<int, Patch> values;
    std::vector<Redistribution::Flight> flights;
    std::map<int, Patch> take(const CommContext& context);
  };
  struct Live {
    Sized* sized;
    StageRunner::Batch batch;
    Patch loss_gradient;
  };

  Sized& sized(int64_t images) { return *sized_.at(images); }
  RunContext run_context(const Sized& here, const MicroBatch& images,
                         const StepContext& step) const;
  void send(Redistribution::Flight flight);
  void limit_sending(size_t most);

  Crew crew_;
  Parameters& parameters_;
  StageOptions options_;
  std::ptrdiff_t stages_ahead_ = 0;                  // behind this one
  std::map<int64_t, std::unique_ptr<Sized>> sized_;  // by images of a micro-batch
  std::map<int, Arrival> inputs_, gradients_;        // by number
  std::map<int, Live> live_;                         // by number
  std::deque<Redistribution::Flight> sending_;
};

}  // namespace mpi4dl
