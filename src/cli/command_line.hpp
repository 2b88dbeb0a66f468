#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "backend/device.hpp"
#include "base/error.hpp"
#include "base/launch.hpp"
#include "cli/commands.hpp"
#include "comm/session.hpp"

namespace mpi4dl {

/// ConfigFileError is a mistake in the file of --config, which may be another one on other nodes.
class ConfigFileError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Knows all commands with their flags, and which was chosen. Needs neither MPI nor tensors, so
/// that a mistake is answered at once.
class CommandLine {
 public:
  CommandLine();

  /// Reads the command line and the file of --config. Returns an exit code where nothing is left to
  /// do, because help or the version was asked for and the first rank has printed it. Throws
  /// UsageError.
  std::optional<int> parse(int argc, char** argv, const Launch& launch);

  const Command& chosen() const { return chosen_; }
  bool caching_allocator() const { return allocator_ == "caching"; }
  /// Returns how to run what was chosen, on this rank's device. Throws UsageError.
  SessionOptions session_options(const Launch& launch) const;
  /// Returns whether a rank's place on its node says which device is its own.
  bool takes_device_by_place() const;
  DeviceArithmetic arithmetic() const { return arithmetic_; }

 private:
  void add_commands();
  void add_device_flags();
  std::string device() const;
  std::string list_of_commands() const;
  std::optional<int> show_help(int argc, char** argv, const Launch& launch);
  std::string sentence_about(const CLI::ParseError& error) const;
  [[noreturn]] void explain(const CLI::ParseError& error, const Launch& launch) const;

  CLI::App app_;
  Command chosen_;
  SessionOptions session_;
  std::string allocator_ = "caching";
  std::string device_ = "auto";
  std::string transport_ = "auto";
  DeviceArithmetic arithmetic_;
};

}  // namespace mpi4dl
