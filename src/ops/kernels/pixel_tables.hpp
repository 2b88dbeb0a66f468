#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ops/kernels/pixel_runs.hpp"

namespace mpi4dl {

/// A run of pixels as a table: `rows` of `lanes` channels, of one pixel or of several.
template <size_t count>
struct Table {
  std::array<int64_t, count> offset, stride;
  int64_t rows, lanes;
};

/// Tensors of one shape with channels side by side, walked together in tables.
template <size_t count>
class Walk {
 public:
  explicit Walk(const std::array<at::Tensor, count>& tensors) : runs_(tensors) {
    if (runs_.gapless()) together_ = std::max<int64_t>(1, kLanes / runs_.channels());
  }

  int64_t channels() const { return runs_.channels(); }
  int64_t lanes() const { return runs_.channels() * together_; }

  /// A number per channel, once for each lane.
  template <typename T>
  std::vector<T> spread(const std::vector<double>& numbers) const {
    std::vector<T> all(lanes());
    for (int64_t first = 0; first < lanes(); first += channels())
      for (int64_t channel = 0; channel < channels(); ++channel)
        all[first + channel] = static_cast<T>(numbers[channel]);
    return all;
  }

  /// Calls `work(thread, table)` for all pixels, on several threads.
  template <typename Work>
  void run(Work&& work) const {
    const int64_t grain = std::max<int64_t>(1, kElementsPerThread / channels());
    at::parallel_for(0, runs_.pixels(), grain, [&](int64_t begin, int64_t end) {
      const int thread = at::get_thread_num();
      runs_.visit(begin, end, [&](const std::array<int64_t, count>& offset, int64_t pixels) {
        Table<count> table{offset, runs_.stride(), pixels / together_, lanes()};
        for (int64_t& stride : table.stride) stride *= together_;
        if (table.rows > 0) work(thread, table);
        if (pixels % together_ == 0) return;
        Table<count> rest{offset, runs_.stride(), pixels % together_, channels()};
        for (size_t i = 0; i < count; ++i) rest.offset[i] += table.rows * table.stride[i];
        work(thread, rest);
      });
    });
  }

 private:
  /// Narrow pixels are taken together, so that vectors are full.
  static constexpr int64_t kLanes = 64;
  /// Fewer elements are not worth another thread.
  static constexpr int64_t kElementsPerThread = 32768;

  PixelRuns<count> runs_;
  int64_t together_ = 1;
};

}  // namespace mpi4dl
