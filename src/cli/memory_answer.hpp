#pragma once

#include <string>
#include <vector>

#include "cli/planned_run.hpp"

namespace mpi4dl {

/// A change of flags that brings every rank under a limit.
struct Remedy {
  std::string flags;  ///< what to give, or to leave out
  std::string price;  ///< what it costs instead
  int64_t bytes = 0;  ///< the most that a rank then needs
  int ranks = 0;      ///< of one replica then
};

/// What is known of a limit that a run does not keep.
struct Remedies {
  std::vector<Remedy> fitting;  ///< the cheapest first; of each kind the smallest change
  Remedy least;                 ///< the change that needs the least memory of all that were tried
};

/// Plans the run again with one change after the other. Those on the same ranks come first, those
/// that alter what is computed after those that do not, more tiles last.
Remedies find_remedies(const Graph& graph, const TrainingFlags& given, int workers, int64_t limit);

}  // namespace mpi4dl
