#pragma once

#include <string>

#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "train/checkpointing.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// The flags that say where training begins, and what is kept of it.
struct CheckpointFlags {
  std::string folder, every, resume, weights;  // empty where not given
  int64_t keep = 0;                            // 0: not given

  void add_to(CLI::App& command);
  /// Throws UsageError where flags contradict each other.
  CheckpointOptions options() const;
};

/// What a run that goes on must be given again: all that decides the numbers, but for the learning
/// rate and its like, which one may want to change. Where ranks stand is free. `images`: to train
/// on.
Manifest::Settings decisive_settings(const ModelFlags& model, const TrainingFlags& training,
                                     int64_t effective_batch, int64_t images);

}  // namespace mpi4dl
