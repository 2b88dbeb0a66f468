#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/pixel_runs.hpp"
#include "backend/cpu/tuning.hpp"
#include "base/expects.hpp"

namespace mpi4dl {

/// Views a run of pixels as a table: `rows` of `lanes` channels, of one pixel or of several.
template <size_t count>
struct Table {
  std::array<int64_t, count> offset, stride;
  int64_t rows, lanes;
};

/// Walks channels-last tensors of one shape together in tables.
template <size_t count>
class Walk {
 public:
  explicit Walk(const std::array<at::Tensor, count>& tensors) : runs_(tensors) {
    if (runs_.gapless()) together_ = std::max<int64_t>(1, kTuning.lanes / runs_.channels());
  }

  int64_t channels() const { return runs_.channels(); }
  int64_t lanes() const { return runs_.channels() * together_; }

  /// Returns the values of all channels, once for each lane.
  template <typename T>
  std::vector<T> spread(std::span<const double> values) const {
    expects(std::ssize(values) == channels(), "there is a value for each channel");
    std::vector<T> all(lanes());
    for (int64_t first = 0; first < lanes(); first += channels())
      for (int64_t channel = 0; channel < channels(); ++channel)
        all[first + channel] = static_cast<T>(values[channel]);
    return all;
  }

  /// Calls `work(thread, table)` for all pixels, on several threads.
  template <typename Work>
  void run(Work&& work) const {
    const int64_t grain = std::max<int64_t>(1, kTuning.elements_per_thread / channels());
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
  PixelRuns<count> runs_;
  int64_t together_ = 1;  // pixels of a row of a table
};

}  // namespace mpi4dl
