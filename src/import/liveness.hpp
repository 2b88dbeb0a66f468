#pragma once

#include <string>
#include <vector>

#include "import/program.hpp"

namespace mpi4dl {

/// Returns true where an operator writes its result to its first argument.
bool in_place(const Call& call);

/// Returns, for each call, whether the result of the program depends on it. One that writes to a
/// value counts where that value, or a view of it, is read.
std::vector<bool> live_calls(const Program& program);

/// Is a change of a tensor of the file that the result depends on: what the model computes would be
/// another thing each time that it is called.
struct StateChange {
  const Call* call;    ///< that writes to it; one that reads it, where the file tells no more
  std::string tensor;  ///< its name
};

/// Returns the changes of tensors that live calls read. Counters of batches, which nothing reads,
/// and statistics, which a batch norm itself changes, are none.
std::vector<StateChange> state_changes(const Program& program, const std::vector<bool>& live);

}  // namespace mpi4dl
