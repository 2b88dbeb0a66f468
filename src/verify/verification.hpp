#pragma once

#include <map>
#include <string>

#include "graph/graph.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Says how a layout of a model is verified: some steps on random images.
struct VerificationOptions {
  BatchShape batch = {};
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  TrainerOptions trainer = {.type = c10::ScalarType::Double, .learning_rate = {.base = 0.01}};
  int steps = 1;
};

/// Holds what training steps leave behind; complete on the first rank.
struct StepResult {
  double loss = 0;  ///< of the last step
  at::Tensor logits;
  std::map<std::string, at::Tensor> gradients, statistics, parameters;
  bool replicas_agree = true;  ///< every rank that holds a parameter has the same value, to the bit
  Traffic sent;                ///< by this rank's exchanges, in all steps
  int64_t peak_bytes = 0;      ///< of this rank's tensors in the last step
};

/// Trains in a layout. Collective over the world.
StepResult train_in_layout(const Graph& graph, const Layout& layout,
                           const VerificationOptions& options, const Communicator& world);

/// Trains the same steps on one rank, in host memory by our own kernels: another device or backend
/// is compared with them.
StepResult train_alone(const Graph& graph, const VerificationOptions& options,
                       const Communicator& alone);

}  // namespace mpi4dl
