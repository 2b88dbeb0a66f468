#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "bench/kept_batch.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Adds up what training steps have cost this rank.
struct StepCosts {
  double seconds = 0;
  double communication = 0, waiting = 0;  ///< of these; the rest it computed
  double cpu = 0;                         ///< seconds of all its threads
  int64_t peak_bytes = 0;                 ///< of tensors at the worst moment, parameters included
};

/// TrainingSide is one side of a benchmark: a trainer with random images that are in memory
/// already.
class TrainingSide {
 public:
  /// Takes a first step, so that everything that a trainer keeps is there. Collective over `comm`,
  /// as is each call below.
  TrainingSide(const Graph& graph, const Layout& layout, Work work, const TrainerOptions& options,
               const Communicator& comm);

  void step();
  const StepCosts& costs() const { return costs_; }
  void clear_costs() { costs_ = {}; }

 private:
  const CommContext& context_;
  KeptBatch images_;
  std::unique_ptr<Trainer> trainer_;
  int64_t held_bytes_ = 0;  // between steps
  StepCosts costs_;
};

/// Runs one side's round and returns its seconds on the slowest rank. Ranks without a part in it
/// sleep meanwhile and leave their cores to the others. Collective over the world.
double time_round(const Communicator& world, const std::function<void()>& round);

}  // namespace mpi4dl
