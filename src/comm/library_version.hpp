#pragma once

#include <string>

namespace mpi4dl {

/// Returns what the MPI library calls itself, such as "Open MPI v4.1.4". Needs no Session.
std::string mpi_library_version();

}  // namespace mpi4dl
