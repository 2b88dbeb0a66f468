#pragma once

#include <CLI/CLI.hpp>

namespace mpi4dl {

/// Checks of numbers on the command line that say what would be right.
CLI::Validator at_least(double least);
CLI::Validator more_than(double bound);

}  // namespace mpi4dl
