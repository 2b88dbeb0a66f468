#pragma once

#include <vector>

#include "import/program.hpp"

namespace mpi4dl {

/// Returns true where an operator writes its result to its first argument.
bool in_place(const Call& call);

/// Returns, for each call, whether the result of the program depends on it. One that writes to a
/// value counts where that value, or a view of it, is read.
std::vector<bool> live_calls(const Program& program);

}  // namespace mpi4dl
