#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/every.hpp"
#include "train/checkpoint_io.hpp"

namespace mpi4dl {

struct CheckpointOptions {
  std::string folder = {};  ///< empty: none are written
  Every every = {.count = 1, .unit = Every::Unit::epochs};
  int64_t keep = 3;         ///< how many are left of them
  std::string resume = {};  ///< empty: no; "auto": the newest whole one of the folder; or this one
  std::vector<std::string> classes = {};  ///< names that checkpoints keep, if there are any
  std::optional<KeptModel> model = {};    ///< that checkpoints keep; nothing: its name is enough
};

/// Knows when a run writes checkpoints, and where it begins. Every rank has one.
class Checkpointing {
 public:
  /// A run that resumes has to be given `must_match` again. `say` tells the user a sentence, once
  /// whatever the number of ranks.
  Checkpointing(CheckpointOptions options, Manifest::Settings must_match, const Communicator& world,
                std::function<void(const std::string&)> say);

  /// Loads what is to be resumed, if anything, and returns where in the data training continues.
  /// Throws UsageError where it belongs to another training, or where checkpoints in the folder
  /// would be mixed with those of this run. Collective over the world, as is the next.
  DataState resume(Trainer& trainer);
  /// Writes one if it is time for it, or if the run ends here. `done`: the last step, of `steps` in
  /// its epoch.
  void after_step(const Trainer& trainer, const DataState& done, int64_t steps, bool last);

  /// Returns the checkpoint that the run went on from; empty where it began.
  const std::string& resumed_from() const { return resumed_from_; }
  bool enabled() const { return !options_.folder.empty(); }
  /// Returns the checkpoint of a step.
  std::string path(int64_t step) const { return folder_.checkpoint(step); }

 private:
  std::vector<int64_t> steps() const;
  std::string newest_whole(const std::vector<int64_t>& steps) const;
  void check_settings(const Checkpoint& checkpoint) const;
  void check_graph(const Checkpoint& checkpoint) const;

  CheckpointOptions options_;
  Manifest::Settings must_match_;
  Communicator world_;
  std::function<void(const std::string&)> say_;
  CheckpointFolder folder_;
  std::string resumed_from_;
  std::pair<int64_t, Position> saved_{-1,
                                      {}};  // the step of the last one, and its place in the data
};

}  // namespace mpi4dl
