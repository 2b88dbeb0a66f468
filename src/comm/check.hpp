#pragma once

#include <source_location>

namespace mpi4dl {

/// Checks the code that an MPI call returned; throws Error naming the MPI error and the caller.
/// It only sees errors because Session sets MPI_ERRORS_RETURN.
void mpi(int code, std::source_location where = std::source_location::current());

}  // namespace mpi4dl
