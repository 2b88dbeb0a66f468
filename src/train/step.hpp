#pragma once

#include <map>
#include <string>

#include "comm/communicator.hpp"
#include "ops/stage_runner.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// How to train one stage that holds the whole model.
struct StepOptions {
  Grid grid;
  int64_t batch = 1;
  HaloDesign halo;
  BatchNormScope batch_norm = BatchNormScope::global;
  c10::ScalarType type = c10::ScalarType::Double;
  uint64_t seed = 1;
  int steps = 1;
  double learning_rate = 0.01;
};

/// What training steps leave behind; complete on the first rank of the stage.
struct StepResult {
  double loss = 0;  ///< of the last step
  at::Tensor logits;
  std::map<std::string, at::Tensor> gradients, statistics;
  Traffic sent;            ///< by this rank's exchanges, in all steps
  int64_t peak_bytes = 0;  ///< of this rank's tensors in the last step's forward and backward
};

/// Runs plain gradient-descent steps on random images and labels that depend on the seed alone.
/// Collective over `stage`, which has one rank per tile.
StepResult run_steps(const Graph& graph, const StepOptions& options, const Communicator& stage);

}  // namespace mpi4dl
