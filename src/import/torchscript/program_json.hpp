#pragma once

#include <string>

#include "import/program.hpp"

namespace mpi4dl {

/// Describes a program as read_described_program reads it.
std::string describe(const Program& program);

}  // namespace mpi4dl
