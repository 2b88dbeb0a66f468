#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mpi4dl {

/// Checks of numbers on the command line that say what would be right.
CLI::Validator at_least(double least);
CLI::Validator more_than(double bound);

/// Says in an option's help what happens without it, where that is no value of the option.
CLI::Option* default_in_words(CLI::Option* option, const std::string& words);

}  // namespace mpi4dl
