#pragma once

#include <cstdint>
#include <vector>

#include "geometry/interval.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

/// One tap of a window, and the position that it reads.
struct Tap {
  int64_t index, from;
};

/// Positions first, first + step, ... along one axis that are computed through the same taps, each
/// from `pace` further on than the one before. What lies outside the image is zero, so it has no
/// taps: near the border runs have fewer.
struct TapRun {
  int64_t first, step, count, pace;
  std::vector<Tap> taps;  // of the first position, in the order of what they read or backwards

  /// From the first to the last position that positions [begin, end) of the run read.
  Interval reach(int64_t begin, int64_t end) const;
};

/// How the outputs of a convolution read its inputs, along one axis. All runs cover each once.
std::vector<TapRun> output_runs(const Window& window, int64_t inputs, int64_t outputs);

/// How the gradients of its inputs read those of its outputs.
std::vector<TapRun> input_runs(const Window& window, int64_t inputs, int64_t outputs);

}  // namespace mpi4dl
