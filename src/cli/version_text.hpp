#pragma once

#include <string>

namespace mpi4dl {

/// Returns what --version prints: the program's version, and what it stands on. Starts neither MPI
/// nor a device.
std::string version_text();

}  // namespace mpi4dl
