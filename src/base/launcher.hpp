#pragma once

#include <sys/types.h>

#include <optional>

namespace mpi4dl {

/// Describes Open MPI's mpirun, or its daemon on this node, which has started this process.
///
/// On Ctrl-C and on SIGTERM mpirun ends its ranks, which are in process groups of their own and
/// hear nothing of a terminal: SIGCONT, a pause, SIGTERM, a pause, SIGKILL. (SIGCONT tells nothing:
/// it also comes after Ctrl-Z.) A second Ctrl-C within five seconds ends mpirun itself at once: it
/// leaves the rest to the ranks, and its files where they are.
struct Launcher {
  pid_t process = 0;
  int pause_seconds = 1;  ///< from SIGTERM to SIGKILL
};

/// Returns nothing where another launcher, or none, has started this process.
std::optional<Launcher> find_launcher();

/// Makes this process end, without a word, when the launcher is gone, and remove the files of
/// shared memory that Open MPI would leave.
void end_with(const Launcher& launcher);

}  // namespace mpi4dl
