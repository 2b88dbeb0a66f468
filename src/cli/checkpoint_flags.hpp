#pragma once

#include <string>

#include "train/checkpointing.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mpi4dl {

/// Holds the flags that say where training begins, and what is kept of it.
struct CheckpointFlags {
  std::string folder, every, resume, weights;  // empty where not given
  int64_t keep = 0;                            // 0: not given

  void add_to(CLI::App& command);
  /// Throws UsageError where flags contradict each other.
  CheckpointOptions options() const;
};

/// Adds --checkpoint, which names trained weights in every command that uses some.
CLI::Option* add_checkpoint_flag(CLI::App& command, std::string& path);

}  // namespace mpi4dl
