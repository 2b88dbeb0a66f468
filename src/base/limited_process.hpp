#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

struct ProcessLimits {
  double seconds = 60;                       ///< from start to end
  int64_t most_output = int64_t{256} << 20;  ///< in bytes
};

/// Says how a process ended.
struct ProcessResult {
  int code = 0;    ///< its exit code, if no signal has ended it
  int signal = 0;  ///< what ended it; 0: itself
  bool timed_out = false;
  bool too_long = false;  ///< its output was
  std::string output;     ///< what it wrote to its standard output
};

/// Runs a program (words[0] is its path) to its end. It gets these variables as its environment, no
/// input, and its error output is dropped. Whoever is in time or output over the limits is ended.
/// Throws Error where it cannot be started.
ProcessResult run_limited(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment, const ProcessLimits& limits);

/// Returns "Segmentation fault" and such.
std::string signal_text(int signal);

}  // namespace mpi4dl
