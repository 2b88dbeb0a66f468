#pragma once

#include <optional>
#include <string>

#include "comm/session.hpp"
#include "storage/folder_lock.hpp"

namespace mpi4dl {

/// Keeps other runs out of the folders that a run writes to while it lives. The first rank holds
/// the locks.
class RunFolders {
 public:
  /// Locks both; either may be empty. Throws UsageError on all ranks where another run is in one of
  /// them. Collective over the world.
  RunFolders(const Session& session, const std::string& checkpoints, const std::string& run);

 private:
  void take(const std::string& checkpoints, const std::string& run);

  std::optional<FolderLock> checkpoints_, run_;
};

}  // namespace mpi4dl
