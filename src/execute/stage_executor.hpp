#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "exchange/redistribution.hpp"
#include "execute/operation.hpp"
#include "execute/parameters.hpp"
#include "execute/rematerialised_value.hpp"
#include "plan/segments.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Says over which pixels batch norm takes its statistics.
enum class BatchNormScope {
  global,    ///< all tiles of the stage
  local,     ///< each tile alone
  replicas,  ///< all tiles of all data-parallel replicas
};

/// Runs batches through this rank's share of a stage, by its plan and its redistributions.
///
/// Nodes run in the order of the graph and backward in the reverse order, on every rank alike, so
/// the two ends of an exchange agree without further messages. A tensor is freed after its last
/// use. With recompute, forward keeps only what passes between segments, runs of cells, and
/// backward runs each again.
class StageExecutor {
 public:
  /// `stage` has one rank per tile of the plan's grid, in its order. `replicas` are all ranks that
  /// run this stage, for BatchNormScope::replicas. Collective over the stage.
  StageExecutor(const StagePlan& plan, const Communicator& stage, BatchNormScope scope,
                std::optional<Communicator> replicas = std::nullopt, bool recompute = false);

  /// Batch is one batch on its way: forward keeps what backward needs, if one will follow.
  class Batch {
   public:
    explicit Batch(const StageExecutor& executor, Parameters& parameters, RunContext context);

    /// Takes for each stage input the box that plan.value(id).computed says for this rank. Returns
    /// this rank's owned box of each stage output. Collective over the stage.
    std::map<int, Patch> forward(std::map<int, Patch> inputs);
    /// Takes the gradient of each stage output and returns that of each stage input; adds those of
    /// the parameters to them, cell by cell from the last, and says when a cell has all of its own.
    /// Collective over the stage.
    std::map<int, Patch> backward(const std::map<int, Patch>& output_gradients,
                                  const std::function<void(int cell)>& cell_done = {});

   private:
    struct Values {
      Patch local;        // what this rank computed
      Patch extended;     // after the exchange
      Patch halo_buffer;  // the memory of extended, with padding around it
      std::optional<Redistribution::Flight> flight;  // of the exchange, while others may read it
    };

    const Backend& backend() const { return *context_.backend; }
    bool recomputes() const { return executor_.recompute_ && context_.backward; }
    void recompute(const Segment& segment);
    void keep(int node, TileResult result);
    TileResult run_node(int node);
    void allocate_halo_buffer(int node);
    void exchange(int node, int local_readers);
    void await_halo(int node);
    Patch read(const Edge& edge) const;
    void count_reading(int node);
    void inspect(int node);
    void release(int node);
    void rematerialise(int node);
    void backward_node(int node);
    void start_gradient_exchange(int node);
    Patch gradient_of(int node);
    void add_gradient(const Edge& edge, const Box& box, at::Tensor gradient);

    const StageExecutor& executor_;
    Parameters& parameters_;
    RunContext context_;
    std::vector<Values> values_;                // by node, while somebody still reads them
    std::vector<Values> gradients_;             // by node
    std::vector<std::unique_ptr<Tape>> tapes_;  // by node
    std::vector<std::vector<Box>> read_boxes_;  // by node and input
    std::vector<int> readers_;                  // by node, not yet run
    std::vector<int> pending_consumers_;        // by node: of its readers
    std::map<int, std::function<void()>> rematerialisers_;  // by node, of values for backward
    std::map<int, RematerialisedValue> rematerialised_;     // by node
    c10::ScalarType type_ = c10::ScalarType::Float;
  };

  const StagePlan& plan() const { return plan_; }
  int rank() const { return stage_.rank(); }
  /// Returns the images of a micro-batch that this rank's part of the batch has.
  Interval images() const;
  /// Returns the context of a training or evaluation step on this stage.
  RunContext context(bool training, uint64_t dropout_seed) const;

 private:
  void make_redistributions();

  const StagePlan& plan_;
  Communicator stage_;
  std::optional<Communicator> tiles_, replicas_;
  BatchNormScope scope_;
  std::vector<std::unique_ptr<Redistribution>> exchanges_, poolings_;  // by node
  std::vector<Box> pooled_parts_;                                      // by node
  bool recompute_;
  Segments segments_;
};

}  // namespace mpi4dl
