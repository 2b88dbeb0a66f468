#pragma once

#include <cstddef>
#include <functional>

namespace mpi4dl {

/// Calls `action` with each number below `count`, on more threads than there are cores: for work
/// that waits for the disk more than it computes. What an action throws ends it, and is thrown.
void on_threads(size_t count, const std::function<void(size_t)>& action);

}  // namespace mpi4dl
