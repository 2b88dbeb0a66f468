// Backward-weights by AMX. Pixels are what is summed over (K), so those of x are written
// transposed, channel by channel: a tap is then a shift along its rows, and each pixel is written
// once for all taps. Those of dy are written in pairs, channels interleaved.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "backend/cpu/amx.hpp"
#include "backend/cpu/image.hpp"
#include "backend/cpu/tuning.hpp"
#include "backend/cpu/weight_gradient.hpp"
#include "base/error.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {
namespace {

using c10::BFloat16;

/// Rounds towards minus infinity.
int64_t divide_down(int64_t value, int64_t by) {
  return value >= 0 ? value / by : -divide_up(-value, by);
}

/// Says how a window's taps along a row read pixels that are written by phase: those at the
/// positions phase, phase + stride, ... one after the other. Tap t reads pixel `shift(t)` of its
/// phase first, and so many follow.
class Phases {
 public:
  Phases(const Window& window, int64_t pixels) : window_(window) {
    first_ = shift(0);
    length_ = pixels + shift(window.kernel - 1) - first_;
  }
  int64_t count() const { return window_.stride; }
  int64_t length() const { return length_; }

  /// Returns which pixel of its phase a tap reads first, and which phase that is.
  int64_t start(int64_t tap) const { return shift(tap) - first_; }
  int64_t phase(int64_t tap) const { return offset(tap) - shift(tap) * window_.stride; }

  /// Returns which of a phase's pixels lie in a row of that width, and where such a pixel lies.
  Interval inside(int64_t phase, int64_t width) const {
    const int64_t begin = std::clamp<int64_t>(-first_, 0, length_);
    const int64_t end = divide_down(width - 1 - phase, window_.stride) + 1 - first_;
    return {begin, std::clamp(end, begin, length_)};
  }
  int64_t position(int64_t phase, int64_t index) const {
    return (index + first_) * window_.stride + phase;
  }

 private:
  int64_t offset(int64_t tap) const { return tap * window_.dilation - window_.padding; }
  int64_t shift(int64_t tap) const { return divide_down(offset(tap), window_.stride); }

  Window window_;
  int64_t first_ = 0, length_ = 0;
};

/// Computes the gradient of the filters that make some channels of dy.
class AmxWeightGradient {
 public:
  AmxWeightGradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows)
      : x_(x),
        dy_(dy),
        windows_(windows),
        depth_(std::min(round_up(dy_.width, 2), kAmxDepth)),
        pixels_(round_up(dy_.width, depth_)),
        phases_(windows[1], pixels_),
        x_channels_(round_up(x_.channels, kAmxColumns)),
        g_channels_(round_up(dy_.channels, kAmxColumns)),
        // Not a multiple of many cache lines, which would all be kept in the same place.
        x_pitch_(round_up(phases_.length(), 32) + 32),
        x_row_(x_pitch_ * x_channels_ * phases_.count()),
        g_row_(pixels_ * g_channels_) {
    const int64_t row_bytes = (x_row_ * windows_[0].stride + g_row_) * int64_t{sizeof(BFloat16)};
    rows_at_once_ = std::clamp<int64_t>(kTuning.transposed_bytes / row_bytes, 1, dy_.height);
  }

  /// Returns the sizes of the buffers that a thread needs, zero at first, in elements: sums (H, W,
  /// in, out), where channels are rounded up, and rows that are written.
  int64_t sums() const { return taps() * x_channels_ * g_channels_; }
  int64_t written() const { return x_rows_at_once() * x_row_ + rows_at_once_ * g_row_; }

  /// Adds what the rows [begin, end) of all images contribute.
  void add_rows(int64_t begin, int64_t end, float* sums, BFloat16* written) const {
    for (int64_t row = begin; row < end;) {
      const int64_t image = row / dy_.height, first = row % dy_.height;
      const int64_t count = std::min({rows_at_once_, end - row, dy_.height - first});
      const Rows rows = write_rows(image, {first, first + count}, written);
      add_taps(rows, sums);
      row += count;
    }
  }

  /// Adds the sums to the gradient of a weight, (out, H, W, in), from a channel on.
  void add_to(float* weight, const float* sums) const {
    for (int64_t tap = 0; tap < taps(); ++tap)
      add_transposed(sums + tap * x_channels_ * g_channels_, x_.channels, dy_.channels,
                     weight + tap * x_.channels, taps() * x_.channels);
  }

 private:
  /// Holds rows of dy and those of x that they read, as they are written.
  struct Rows {
    Interval g_rows, x_rows;
    BFloat16 *g, *x;
  };

  int64_t taps() const { return windows_[0].kernel * windows_[1].kernel; }
  int64_t x_rows_at_once() const { return windows_[0].need({0, rows_at_once_}).length(); }

  /// Writes rows. What is between them, padding, is zero and stays so.
  Rows write_rows(int64_t image, const Interval& g_rows, BFloat16* to) const {
    const Interval x_rows = intersect(windows_[0].need(g_rows), Interval{0, x_.height});
    const Rows rows{g_rows, x_rows, to + x_rows_at_once() * x_row_, to};
    for (int64_t row = x_rows.begin; row < x_rows.end; ++row)
      for (int64_t phase = 0; phase < phases_.count(); ++phase) {
        const Interval inside = phases_.inside(phase, x_.width);
        write_transposed({x_.data + image * x_.image_stride + row * x_.row_stride +
                              phases_.position(phase, inside.begin) * x_.pixel_stride,
                          windows_[1].stride * x_.pixel_stride, inside.length(), x_.channels},
                         x_of(rows, row, phase) + inside.begin, x_pitch_);
      }
    for (int64_t row = g_rows.begin; row < g_rows.end; ++row)
      write_pairs({dy_.data + image * dy_.image_stride + row * dy_.row_stride, dy_.pixel_stride,
                   dy_.width, dy_.channels},
                  g_of(rows, row), 2 * g_channels_);
    return rows;
  }

  BFloat16* x_of(const Rows& rows, int64_t row, int64_t phase) const {
    return rows.x + (row - rows.x_rows.begin) * x_row_ + phase * x_pitch_ * x_channels_;
  }
  BFloat16* g_of(const Rows& rows, int64_t row) const {
    return rows.g + (row - rows.g_rows.begin) * g_row_;
  }

  void add_taps(const Rows& rows, float* sums) const {
    const Window &y_window = windows_[0], &x_window = windows_[1];
    std::vector<AmxPixelRow> pairs;
    for (int64_t y = 0; y < y_window.kernel; ++y)
      for (int64_t x = 0; x < x_window.kernel; ++x, sums += x_channels_ * g_channels_) {
        pairs.clear();
        for (int64_t row = rows.g_rows.begin; row < rows.g_rows.end; ++row) {
          const int64_t from = row * y_window.stride + y * y_window.dilation - y_window.padding;
          if (rows.x_rows.contains({from, from + 1}))
            pairs.push_back(
                {x_of(rows, from, phases_.phase(x)) + phases_.start(x), g_of(rows, row)});
        }
        if (pairs.empty()) continue;
        add_outer_amx({.rows = pairs.data(),
                       .row_count = std::ssize(pairs),
                       .depth = depth_,
                       .pixels = pixels_,
                       .x_pitch = x_pitch_,
                       .g_pitch = 2 * g_channels_,
                       .rows_of_sums = x_channels_,
                       .columns_of_sums = g_channels_,
                       .sums = sums,
                       .sum_pitch = g_channels_});
      }
  }

  Image<BFloat16> x_, dy_;
  ImageWindows windows_;
  int64_t depth_, pixels_;  // of a row of dy, rounded up
  Phases phases_;
  int64_t x_channels_, g_channels_, x_pitch_, x_row_, g_row_;
  int64_t rows_at_once_ = 1;
};

/// Returns how many channels of dy have sums that stay in L2.
int64_t channels_at_once(const at::Tensor& x, const ImageWindows& windows) {
  const int64_t bytes = windows[0].kernel * windows[1].kernel * round_up(x.size(1), kAmxColumns) *
                        int64_t{sizeof(float)};
  return std::max(kAmxColumns, kTuning.amx_sum_bytes / bytes / kAmxColumns * kAmxColumns);
}

}  // namespace

void accumulate_weight_gradient_amx(const at::Tensor& x, const at::Tensor& dy,
                                    const ImageWindows& windows, const at::Tensor& sums,
                                    InstructionSet /*set*/) {
  expects(fit(x, dy, windows, sums), "sums have the shape of the weight, x and dy as many images");
  expects(sums.scalar_type() == at::kFloat && x.scalar_type() == at::kBFloat16 &&
              dy.scalar_type() == at::kBFloat16,
          "x, dy and sums have the types of the kernel");
  const at::Tensor whole = sums.permute({0, 2, 3, 1});
  ensure(whole.is_contiguous(), "the gradient of a weight must be channels-last");
  if (dy.numel() == 0 || x.numel() == 0) return;
  const int64_t at_once = channels_at_once(x, windows), rows = dy.size(0) * dy.size(2);
  for (int64_t first = 0; first < dy.size(1); first += at_once) {
    const int64_t channels = std::min(at_once, dy.size(1) - first);
    const AmxWeightGradient gradient(x, dy.narrow(1, first, channels), windows);
    const int64_t grain = rows_per_thread(gradient.sums() * dy.size(3));
    const int64_t shares = std::min<int64_t>(at::get_num_threads(), divide_up(rows, grain));
    const at::Tensor sums_of = at::zeros({shares, gradient.sums()}, at::kFloat);
    const at::Tensor written = at::zeros({shares, gradient.written()}, at::kBFloat16);
    at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      const int thread = at::get_thread_num();
      gradient.add_rows(begin, end, sums_of.data_ptr<float>() + thread * gradient.sums(),
                        written.data_ptr<BFloat16>() + thread * gradient.written());
    });
    for (int64_t share = 0; share < shares; ++share)
      gradient.add_to(whole.data_ptr<float>() + first * whole.stride(0),
                      sums_of.data_ptr<float>() + share * gradient.sums());
  }
}

}  // namespace mpi4dl
