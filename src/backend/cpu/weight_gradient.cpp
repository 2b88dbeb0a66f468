#include "backend/cpu/weight_gradient.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "backend/cpu/image.hpp"
#include "backend/cpu/microkernels.hpp"
#include "backend/cpu/row_reader.hpp"
#include "backend/cpu/tuning.hpp"
#include "base/error.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {
namespace {

/// Returns how many pixels' products are summed before they are added to those of others.
int64_t pixels_at_once(const OuterMicrokernel& kernel) {
  const auto element = static_cast<int64_t>(c10::elementSize(kernel.operand));
  return std::min(kTuning.outer_pixels, kTuning.outer_bytes / (kernel.width * element));
}

template <typename T, typename Stored>
class WeightGradient {
 public:
  WeightGradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                 InstructionSet set)
      : x_(x),
        dy_(dy),
        windows_(windows),
        set_(set),
        x_reader_(x_, set, spacing(dy_.channels)),
        dy_reader_(dy_, set, spacing(x_.channels)),
        taps_at_once_(taps_at_once()),
        kernel_(kernel_for(taps_at_once_)),
        pixels_at_once_(pixels_at_once(kernel_)) {}

  /// Adds what the rows [begin, end) of all images contribute to sums (out, H, W, in).
  void add_rows(int64_t begin, int64_t end, T* sums) {
    const int64_t at_once = std::min(x_reader_.rows_at_once(), dy_reader_.rows_at_once());
    for (int64_t row = begin; row < end;) {
      const int64_t image = row / dy_.height, first = row % dy_.height;
      const int64_t rows = std::min({at_once, end - row, dy_.height - first});
      add_rows_of_image(image, {first, first + rows}, sums);
      row += rows;
    }
  }

 private:
  /// Pixels are read over and over, some channels at a time. A copy with larger gaps between them
  /// pays where a value is multiplied often, with those of so many channels through each tap.
  Spacing spacing(int64_t channels) const {
    const int64_t reuse = channels * windows_[0].kernel * windows_[1].kernel;
    return reuse >= kTuning.reuse_worth_copying ? Spacing::spread : Spacing::any;
  }

  /// Returns the microkernel for the channels of so many taps together.
  const OuterMicrokernel& kernel_for(int64_t taps) const {
    return choose_outer_microkernel(c10::CppTypeToScalarType<T>::value, set_, taps * x_.channels);
  }

  /// Neighbouring taps that read contiguous pixels can be one tap with the channels of all, which
  /// pays where register tiles are wider then.
  int64_t taps_at_once() const {
    const Window& window = windows_[1];
    const bool contiguous =
        window.stride == 1 && window.dilation == 1 && x_reader_.pixel_stride() == x_.channels;
    return contiguous && kernel_for(window.kernel).width > kernel_for(1).width ? window.kernel : 1;
  }

  void add_rows_of_image(int64_t image, const Interval& rows, T* sums) {
    x_rows_ = x_reader_.read(image, intersect(windows_[0].need(rows), {0, x_.height}));
    dy_rows_ = dy_reader_.read(image, rows);
    const int64_t columns_at_once = std::min(dy_.width, pixels_at_once_);
    const int64_t rows_at_once =
        std::max<int64_t>(1, pixels_at_once_ / std::max<int64_t>(dy_.width, 1));
    for (int64_t row = rows.begin; row < rows.end; row += rows_at_once)
      for (int64_t column = 0; column < dy_.width; column += columns_at_once)
        add_block({row, std::min(row + rows_at_once, rows.end)},
                  {column, std::min(column + columns_at_once, dy_.width)}, sums);
  }

  void add_block(const Interval& rows, const Interval& columns, T* sums) {
    for (int64_t y = 0; y < windows_[0].kernel; ++y)
      for (int64_t first = 0; first < windows_[1].kernel; first += taps_at_once_) {
        const Interval all = readers(first, taps_at_once_, columns);
        add_taps(rows, all, y, {first, first + taps_at_once_}, sums);
        if (taps_at_once_ == 1) continue;
        for (int64_t x = first; x < first + taps_at_once_; ++x) {  // those that miss some taps
          const Interval some = readers(x, 1, columns);
          add_taps(rows, {some.begin, std::min(all.begin, some.end)}, y, {x, x + 1}, sums);
          add_taps(rows, {std::max(all.end, some.begin), some.end}, y, {x, x + 1}, sums);
        }
      }
  }

  /// Returns which of these outputs along a row read pixels through all of `count` taps.
  Interval readers(int64_t tap, int64_t count, const Interval& columns) const {
    const Window& window = windows_[1];
    const int64_t first = offset(window, tap), last = offset(window, tap + count - 1);
    const int64_t begin = divide_up(std::max<int64_t>(-first, 0), window.stride);
    const int64_t end = divide_up(std::max<int64_t>(x_.width - last, 0), window.stride);
    return intersect(columns, {begin, end});
  }

  /// Returns the distance from where an output would be without padding to what its tap reads.
  static int64_t offset(const Window& window, int64_t tap) {
    return tap * window.dilation - window.padding;
  }

  /// Adds what these outputs contribute through neighbouring taps in row `tap_y` of the window.
  void add_taps(const Interval& rows, const Interval& columns, int64_t tap_y, const Interval& taps,
                T* sums) {
    if (columns.empty()) return;
    find_pairs(rows, columns, tap_y, taps.begin);
    if (pairs_.empty()) return;
    const int64_t sum_pitch = windows_[0].kernel * windows_[1].kernel * x_.channels;
    const int64_t channels = taps.length() * x_.channels;
    T* to = sums + (tap_y * windows_[1].kernel + taps.begin) * x_.channels;
    for (int64_t first = 0; first < channels; first += kernel_.width)
      add_panel(first, std::min(kernel_.width, channels - first), to + first, sum_pitch);
  }

  /// Finds what outputs read through a tap: one stretch a row.
  void find_pairs(const Interval& rows, const Interval& columns, int64_t tap_y, int64_t tap_x) {
    pairs_.clear();
    const Window &y_window = windows_[0], &x_window = windows_[1];
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t from = row * y_window.stride + offset(y_window, tap_y);
      if (from < 0 || from >= x_.height) continue;
      pairs_.push_back({x_rows_.at(from, columns.begin * x_window.stride + offset(x_window, tap_x)),
                        dy_rows_.at(row, columns.begin), columns.length()});
    }
  }

  /// Adds to some columns of the sums.
  void add_panel(int64_t first, int64_t columns, T* sums, int64_t sum_pitch) {
    OuterProduct product{.pairs = pairs_.data(),
                         .pair_count = std::ssize(pairs_),
                         .x_pitch = windows_[1].stride * x_rows_.pixel_stride,
                         .g_pitch = dy_rows_.pixel_stride,
                         .x_offset = first,
                         .rows = dy_.channels,
                         .columns = columns,
                         .sum = sums,
                         .sum_pitch = sum_pitch};
    if (columns < kernel_.width) {
      product.pairs = fill_up(first, columns, product.x_pitch);
      product.x_pitch = kernel_.width;
      product.x_offset = 0;
    }
    kernel_.run(product);
  }

  /// Copies the last channels of the pairs' pixels to where a whole tile of them can be read.
  const PixelPairs* fill_up(int64_t first, int64_t channels, int64_t pitch) {
    filled_.assign(static_cast<size_t>(pixels_at_once_ * kernel_.width), T{0});
    filled_pairs_ = pairs_;
    T* to = filled_.data();
    for (PixelPairs& pair : filled_pairs_) {
      const T* from = static_cast<const T*>(std::exchange(pair.x, to)) + first;
      for (int64_t pixel = 0; pixel < pair.pixels; ++pixel, to += kernel_.width)
        std::copy_n(from + pixel * pitch, channels, to);
    }
    return filled_pairs_.data();
  }

  Image<Stored> x_, dy_;
  ImageWindows windows_;
  InstructionSet set_;
  RowReader<T, Stored> x_reader_, dy_reader_;
  ImageRows<T> x_rows_, dy_rows_;
  int64_t taps_at_once_;
  const OuterMicrokernel& kernel_;
  int64_t pixels_at_once_;
  std::vector<PixelPairs> pairs_, filled_pairs_;
  std::vector<T> filled_;
};

template <typename T, typename Stored = T>
void accumulate(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                const at::Tensor& sums, InstructionSet set) {
  expects(fit(x, dy, windows, sums), "sums have the shape of the weight, x and dy as many images");
  expects(sums.scalar_type() == c10::CppTypeToScalarType<T>::value &&
              x.scalar_type() == c10::CppTypeToScalarType<Stored>::value &&
              dy.scalar_type() == x.scalar_type(),
          "x, dy and sums have the types of the kernel");
  ensure(sums.is_contiguous(at::MemoryFormat::ChannelsLast),
         "the gradient of a weight must be channels-last");
  const int64_t grain = rows_per_thread(sums.numel() * dy.size(3));
  const int64_t rows = dy.size(0) * dy.size(2);
  const int64_t shares = std::min<int64_t>(at::get_num_threads(), divide_up(rows, grain));
  std::vector<at::Tensor> by_thread{sums};  // made here: only this thread's memory is metered
  while (std::ssize(by_thread) < shares) by_thread.push_back(at::zeros_like(sums));
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    WeightGradient<T, Stored>(x, dy, windows, set)
        .add_rows(begin, end, by_thread[at::get_thread_num()].data_ptr<T>());
  });
  for (size_t thread = 1; thread < by_thread.size(); ++thread) sums.add_(by_thread[thread]);
}

const std::array kKernels{
    WeightGradientKernel{InstructionSet::sse2, at::kFloat, accumulate<float>},
    WeightGradientKernel{InstructionSet::sse2, at::kDouble, accumulate<double>},
    WeightGradientKernel{InstructionSet::sse2, at::kBFloat16, accumulate<float, c10::BFloat16>},
    WeightGradientKernel{InstructionSet::amx, at::kBFloat16, accumulate_weight_gradient_amx},
};

}  // namespace

const WeightGradientKernel& choose_weight_gradient_kernel(c10::ScalarType stored,
                                                          InstructionSet set) {
  const WeightGradientKernel* best = nullptr;
  for (const WeightGradientKernel& kernel : kKernels)
    if (kernel.stored == stored && kernel.set <= set && (!best || kernel.set > best->set))
      best = &kernel;
  ensure(best != nullptr, "there is no kernel of backward-weights for {}", c10::toString(stored));
  return *best;
}

}  // namespace mpi4dl
