#pragma once

#include <cstdint>
#include <vector>

#include "geometry/interval.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

/// Tap is one tap of a window, and the position that it reads.
struct Tap {
  int64_t index, from;
};

/// Holds the positions first, first + step, ... along one axis that are computed through the same
/// taps, each from inputs `input_stride` further on than the one before. What lies outside the
/// image is zero, so it has no taps: near the border runs have fewer.
struct TapRun {
  int64_t first, step, count, input_stride;
  std::vector<Tap> taps;  // of the first position, in the order of what they read or backwards

  /// Returns the inputs from the first to the last that positions [begin, end) of the run read.
  Interval receptive_range(int64_t begin, int64_t end) const;
};

/// Returns how the outputs of a convolution read its inputs, along one axis (forward). Together the
/// runs cover each output once.
std::vector<TapRun> output_runs(const Window& window, int64_t inputs, int64_t outputs);

/// Returns how the gradients of its inputs read those of its outputs (backward-data).
std::vector<TapRun> input_runs(const Window& window, int64_t inputs, int64_t outputs);

}  // namespace mpi4dl
