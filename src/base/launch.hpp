#pragma once

#include <optional>
#include <string>

namespace mpi4dl {

/// Holds what the launcher's environment tells about this process before MPI starts, so that a
/// mistake on the command line costs no start of MPI, and one rank speaks about it.
struct Launch {
  int rank = 0;
  std::optional<int> ranks = {};  ///< unknown without a launcher, or with one that does not tell
  int local_rank = 0;             ///< among the ranks of this node
};

/// Reads the variables of Open MPI, of PMI (MPICH, Intel MPI, MVAPICH) and of Slurm's job steps.
Launch read_launch();

/// Spares a process without a launcher what takes Open MPI most of its start: a daemon for ranks
/// that might be started later, a look at all networks, and memory to share with others.
void start_mpi_alone();

/// Says who finds the same mistake: every rank sees the command line, but a file may be another
/// one, or missing, on some nodes.
enum class SeenBy { every_rank, some_ranks };

/// Ends a process that has not started MPI, with exit code 2. The first rank speaks and ends at
/// once, for which the launcher ends the others. They wait for that; where the first rank has not
/// seen what some of them see, they speak then.
[[noreturn]] void end_with_usage_error(const Launch& launch, const std::string& sentence,
                                       SeenBy seen);

}  // namespace mpi4dl
