#pragma once

#include <string>

#include "cli/fine_tuning_flags.hpp"
#include "cli/parallel_flags.hpp"
#include "train/trainer.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// Holds the flags that say how a model in a layout learns, for every command that trains.
struct TrainingFlags {
  ParallelFlags parallel;
  int64_t batch = 32;
  int parts = 1;
  int times = 0;         // 0: 2 with --gems, 1 without
  std::string schedule;  // empty: chosen by --gems and --parts
  std::string batch_norm = "global";
  std::string dtype = "float32";
  std::string optimizer = "sgd";
  std::string rate_kind = "constant";
  TrainerOptions trainer;
  FineTuningFlags tuning;

  /// Adds the flags of where the model is and how batches go through it.
  void add_layout_flags(CLI::App& command);
  /// Adds the flags that decide how large its tensors are: all else that a plan needs.
  void add_state_flags(CLI::App& command);
  /// Adds the flags of how it learns, add_state_flags included.
  void add_learning_flags(CLI::App& command);

  /// Throws UsageError where flags contradict each other.
  void check() const;
  /// Returns whether batches go through the ranks in two directions.
  bool both_ways() const;
  BatchShape batch_shape(const Layout& layout) const;
  ScheduleKind schedule_kind() const;
  /// Returns options that are complete but for what depends on the number of steps. The graph is
  /// the one that is trained, with what is frozen.
  TrainerOptions trainer_options(const Graph& graph, const Layout& layout) const;
};

/// Says where the model is and how batches go through it, in a line or two.
std::string describe_layout(const Graph& graph, const Layout& layout,
                            const std::vector<CellRange>& cells, const TrainingFlags& flags);

}  // namespace mpi4dl
