#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mpi4dl {

/// CheckpointFolder is the folder in which a run keeps its checkpoints, each in a folder named by
/// its step.
///
/// A new one is written under another name and gets its own when it is complete and on the disk;
/// only then older ones may go. So whatever happens, those that were there are still whole.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Returns the steps of all checkpoints, whole or not, in rising order; none where there is no
  /// folder.
  std::vector<int64_t> steps() const;
  std::string checkpoint(int64_t step) const;
  /// Returns where the checkpoint of a step is while it is written.
  std::string partial(int64_t step) const;

  /// Makes the partial one anew, and removes what earlier runs left half written.
  void begin(int64_t step) const;
  /// Gives the partial one, which is complete, its name for good.
  void publish(int64_t step) const;
  /// Removes a partial one, as far as that is possible.
  void abandon(int64_t step) const noexcept;
  /// Removes all but the newest `keep` of those up to this step.
  void prune(int64_t step, int64_t keep) const;

 private:
  void discard(int64_t step) const;

  std::string path_;
};

/// Returns the checkpoint that a user means by a folder: the folder itself, or the newest one in
/// it. Throws UsageError where there is none.
std::string find_checkpoint(const std::string& path);

}  // namespace mpi4dl
