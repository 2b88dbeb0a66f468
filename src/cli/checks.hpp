#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mpi4dl {

/// Checks a number on the command line, and says what would be right.
CLI::Validator at_least(double least);
/// Checks a number likewise: it must be larger than the bound.
CLI::Validator more_than(double bound);

/// Throws CLI::ValidationError where a whole number is written so that the parser takes it for
/// another one: 010 would be eight, and one that is too large the largest that there is.
void check_whole_numbers(const CLI::Option& option);

/// Returns what is wrong with a flag, where the parser's own words would be about its rules.
std::string in_plain_words(const CLI::ParseError& error);

/// Says in an option's help what happens without it, where that is no value of the option.
CLI::Option* default_in_words(CLI::Option* option, const std::string& words);

}  // namespace mpi4dl
