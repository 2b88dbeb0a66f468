#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mpi4dl {

/// Returns the command as it is typed: "mpi4dl bench halo".
std::string full_name(const CLI::App& command);

/// Returns the long flags of a command and of those above it, with their dashes.
std::vector<std::string> flag_names(const CLI::App& command);

/// Returns the names of the commands directly below this one.
std::vector<std::string> command_names(const CLI::App& command);

/// Returns the innermost command that the command line has named.
const CLI::App& innermost(const CLI::App& app);

}  // namespace mpi4dl
