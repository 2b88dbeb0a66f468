#include "backend/cpu/tap_runs.hpp"

#include <algorithm>

namespace mpi4dl {
namespace {

bool same_indices(const std::vector<Tap>& a, const std::vector<Tap>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tap& left, const Tap& right) { return left.index == right.index; });
}

/// Joins positions with the same taps; `find(position, taps)` adds those of a position.
template <typename Find>
std::vector<TapRun> collect(int64_t length, int64_t step, int64_t input_stride, Find&& find) {
  std::vector<TapRun> runs;
  std::vector<Tap> taps;
  for (int64_t first = 0; first < std::min(step, length); ++first)
    for (int64_t position = first; position < length; position += step) {
      taps.clear();
      find(position, taps);
      if (position != first && same_indices(runs.back().taps, taps)) {
        ++runs.back().count;
      } else {
        runs.push_back({position, step, 1, input_stride, taps});
      }
    }
  return runs;
}

}  // namespace

Interval TapRun::receptive_range(int64_t begin, int64_t end) const {
  if (taps.empty()) return {};
  const auto [low, high] = std::minmax(taps.front().from, taps.back().from);
  return {low + begin * input_stride, high + (end - 1) * input_stride + 1};
}

std::vector<TapRun> output_runs(const Window& window, int64_t inputs, int64_t outputs) {
  return collect(outputs, 1, window.stride, [&](int64_t output, std::vector<Tap>& taps) {
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      const int64_t from = output * window.stride - window.padding + tap * window.dilation;
      if (from >= 0 && from < inputs) taps.push_back({tap, from});
    }
  });
}

std::vector<TapRun> input_runs(const Window& window, int64_t inputs, int64_t outputs) {
  return collect(inputs, window.stride, 1, [&](int64_t input, std::vector<Tap>& taps) {
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      const int64_t begin = input + window.padding - tap * window.dilation;
      if (begin >= 0 && begin % window.stride == 0 && begin / window.stride < outputs)
        taps.push_back({tap, begin / window.stride});
    }
  });
}

}  // namespace mpi4dl
