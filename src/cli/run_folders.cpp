#include "cli/run_folders.hpp"

#include <fmt/format.h>

#include "comm/agreement.hpp"

namespace mpi4dl {
namespace {

void tell_weakness(const std::string& folder, const FolderLock& lock) {
  if (lock.weakness().empty()) return;
  fmt::print("{} cannot be locked ({}): start no second run in it\n", folder, lock.weakness());
}

}  // namespace

RunFolders::RunFolders(const Session& session, const std::string& checkpoints,
                       const std::string& run) {
  run_together(session.world(), [&] {
    if (session.first()) take(checkpoints, run);
  });
}

/// Takes locks of different names, for the two may be one folder.
void RunFolders::take(const std::string& checkpoints, const std::string& run) {
  if (!checkpoints.empty()) {
    checkpoints_.emplace("--checkpoint-dir", checkpoints, ".checkpoints.lock");
    tell_weakness(checkpoints, *checkpoints_);
  }
  if (!run.empty()) {
    run_.emplace("--run-dir", run, ".run.lock");
    tell_weakness(run, *run_);
  }
}

}  // namespace mpi4dl
