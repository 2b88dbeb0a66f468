#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mpi4dl {

// Flags in a file:
//
//     timeout = 60              # flags of every command stand before the first section
//     [train]
//     model = resnet
//     num-spatial-parts = 4,2   # a list as on the command line
//     halo-D2 = true            # a switch is true or false
//     datapath = "with # in it" # quotes where a value has a comment's sign or blanks at its ends
//     [bench.train]             # a command below another
//
// Every line must make sense for the command of its section, also where another command runs. What
// the command line says goes before the file.

/// Reads such a file for --config; every complaint names its line.
class ConfigFile : public CLI::Config {
 public:
  explicit ConfigFile(CLI::App& app) : app_(app) {}

  /// Gives each flag its value right away, since a value that is not sound is a line's mistake;
  /// nothing is left for CLI11 to do. Throws CLI::ConfigError.
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override;
  std::string to_config(const CLI::App* app, bool defaults, bool descriptions,
                        std::string prefix) const override;

 private:
  CLI::App& app_;
};

/// Returns the flags that were given, of the program and of one of its commands, as such a file.
/// `left_out`: names of flags that are not written.
std::string given_flags(const CLI::App& command, const std::vector<std::string>& left_out);

/// Returns the program itself, which is above its commands.
const CLI::App& program_of(const CLI::App& command);

}  // namespace mpi4dl
