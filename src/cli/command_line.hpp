#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/launch.hpp"
#include "cli/commands.hpp"

namespace mpi4dl {

/// A mistake in the file of --config, which may be another one on other nodes.
class ConfigFileError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The command line: all commands with their flags, and what was chosen. Needs neither MPI nor
/// tensors, so that a mistake is answered at once.
class CommandLine {
 public:
  CommandLine();

  /// Reads the command line and the file of --config. Returns an exit code where nothing is left to
  /// do, because help or the version was asked for and the first rank has printed it. Throws
  /// UsageError.
  std::optional<int> parse(int argc, char** argv, const Launch& launch);

  const Command& chosen() const { return chosen_; }
  double timeout_seconds() const { return timeout_; }
  bool caching_allocator() const { return allocator_ == "caching"; }

 private:
  void add_commands();
  std::string list_of_commands() const;
  std::optional<int> show_help(int argc, char** argv, const Launch& launch);
  std::string sentence_about(const CLI::ParseError& error) const;
  [[noreturn]] void explain(const CLI::ParseError& error, const Launch& launch) const;

  CLI::App app_;
  Command chosen_;
  double timeout_;
  std::string allocator_ = "caching";
};

}  // namespace mpi4dl
