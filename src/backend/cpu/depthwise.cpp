#include "backend/cpu/depthwise.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "backend/cpu/by_type.hpp"
#include "backend/cpu/image.hpp"
#include "backend/cpu/lanes.hpp"
#include "backend/cpu/register_tile.hpp"
#include "backend/cpu/tap_runs.hpp"
#include "base/expects.hpp"

namespace mpi4dl {
namespace {

// The register tile, which is what the kernels are: pixels whose sums are in registers at once, for
// each of two vectors of channels, or for as many more of a single pixel; and taps whose gradients
// are.
constexpr int kPixels = 4, kVectors = 2, kTaps = 12;

struct Offsets {
  int64_t x, weight;  // from the first pixel and from the first channel of the weights
};

/// Line is a run of pixels of one row with the same taps.
template <typename Stored>
struct Line {
  const Stored* x;
  const Stored* residual;  // null: none
  Stored* y;               // written, or read as the gradient
  int64_t x_pitch, residual_pitch, y_pitch, pixels;
  const Offsets* taps;
  int64_t tap_count;
};

/// Goes over [begin, end) channels: as many vectors at once as fit, then one by one, then single
/// channels.
template <typename Stored, int bytes, int most, typename Work>
[[gnu::always_inline]] inline void each_block(int64_t begin, int64_t end, const Work& work) {
  using Wider = Lanes<Stored, bytes>;
  using One = Lanes<Stored, static_cast<int>(sizeof(Wide<Stored>))>;
  for (; begin + most * Wider::count <= end; begin += most * Wider::count)
    work(Wider{}, std::integral_constant<int, most>{}, begin);
  for (; begin + Wider::count <= end; begin += Wider::count)
    work(Wider{}, std::integral_constant<int, 1>{}, begin);
  for (; begin < end; ++begin) work(One{}, std::integral_constant<int, 1>{}, begin);
}

/// Writes sums over taps of pixels times weights.
template <typename Stored, int bytes>
struct ConvolveLine {
  using T = Wide<Stored>;

  [[gnu::always_inline]] static void run(const Line<Stored>& line, const T* weights, const T* bias,
                                         int64_t channels) {
    const int64_t rest = line.pixels % kPixels, most = line.pixels - rest;
    if (most > 0) write_pixels<kVectors, kPixels>(line, weights, bias, channels, 0, most);
    if (rest > 0)
      write_pixels<kPixels * kVectors, 1>(line, weights, bias, channels, most, line.pixels);
  }

 private:
  template <int vectors, int pixels>
  [[gnu::always_inline]] static void write_pixels(const Line<Stored>& line, const T* weights,
                                                  const T* bias, int64_t channels, int64_t begin,
                                                  int64_t end) {
    each_block<Stored, bytes, vectors>(
        0, channels, [&](auto lanes, auto block, int64_t channel) __attribute__((always_inline)) {
          for (int64_t pixel = begin; pixel < end; pixel += pixels)
            write<decltype(lanes), block, pixels>(line, weights, bias, channel, pixel);
        });
  }

  template <typename L, int vectors, int pixels>
  [[gnu::always_inline]] static void write(const Line<Stored>& line, const T* weights,
                                           const T* bias, int64_t channel, int64_t pixel) {
    typename L::Vector sums[pixels][vectors];
    for (int p = 0; p < pixels; ++p)
      for (int v = 0; v < vectors; ++v)
        Lanes<T, sizeof(sums[0][0])>::load(bias + channel + v * L::count, sums[p][v]);
    const Stored* x = line.x + pixel * line.x_pitch + channel;
    for (const Offsets* tap = line.taps; tap != line.taps + line.tap_count; ++tap) {
      typename L::Vector weight[vectors];
      for (int v = 0; v < vectors; ++v)
        Lanes<T, sizeof(weight[0])>::load(weights + tap->weight + channel + v * L::count,
                                          weight[v]);
#pragma GCC unroll 4
      for (int p = 0; p < pixels; ++p)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          typename L::Vector value;
          L::load(x + tap->x + p * line.x_pitch + v * L::count, value);
          sums[p][v] += value * weight[v];
        }
    }
    for (int p = 0; p < pixels; ++p)
      for (int v = 0; v < vectors; ++v) {
        const int64_t at = channel + v * L::count;
        if (line.residual != nullptr) {
          typename L::Vector more;
          L::load(line.residual + (pixel + p) * line.residual_pitch + at, more);
          sums[p][v] += more;
        }
        L::store(sums[p][v], line.y + (pixel + p) * line.y_pitch + at);
      }
  }
};

/// Adds the sums over pixels of gradients times what a tap has read.
template <typename Stored, int bytes>
struct AddLine {
  using T = Wide<Stored>;

  [[gnu::always_inline]] static void run(const Line<Stored>& line, T* sums, int64_t begin,
                                         int64_t end) {
    each_block<Stored, bytes, 1>(
        begin, end, [&](auto lanes, auto /*one*/, int64_t channel) __attribute__((always_inline)) {
          cut_evenly<kTaps>(line.tap_count, [&](auto taps, int64_t first,
                                                int64_t last) __attribute__((always_inline)) {
            for (; first < last; first += taps)
              add<decltype(lanes), decltype(taps)::value>(line, first, sums, channel);
          });
        });
  }

 private:
  template <typename L, int taps>
  [[gnu::always_inline]] static void add(const Line<Stored>& line, int64_t first, T* sums,
                                         int64_t channel) {
    typename L::Vector products[taps] = {};
    const Stored* x[taps];
    for (int t = 0; t < taps; ++t) x[t] = line.x + line.taps[first + t].x + channel;
    const Stored* gradient = line.y + channel;
    for (int64_t pixel = 0; pixel < line.pixels; ++pixel, gradient += line.y_pitch) {
      typename L::Vector dy;
      L::load(gradient, dy);
#pragma GCC unroll 12
      for (int t = 0; t < taps; ++t) {
        typename L::Vector value;
        L::load(x[t] + pixel * line.x_pitch, value);
        products[t] += value * dy;
      }
    }
    for (int t = 0; t < taps; ++t) {
      using Sums = Lanes<T, sizeof(products[0])>;
      T* sum = sums + line.taps[first + t].weight + channel;
      typename L::Vector before;
      Sums::load(sum, before);
      Sums::store(before + products[t], sum);
    }
  }
};

/// Chooses the width of vectors by the instruction set.
template <typename Stored, template <typename, int> typename Kernel, typename... Args>
Compiled<Args...> kernel_for(InstructionSet set) {
  if (set >= InstructionSet::avx512) return compiled_for<Kernel<Stored, 64>, Args...>(set);
  if (set == InstructionSet::avx2) return compiled_for<Kernel<Stored, 32>, Args...>(set);
  return compiled_for<Kernel<Stored, 16>, Args...>(set);
}

/// Lists the rows of one image that are computed from another's, and the lines of each.
template <typename Stored>
class Lines {
 public:
  using T = Wide<Stored>;

  Lines(const at::Tensor& x, const at::Tensor& y, const at::Tensor& residual,
        const std::vector<TapRun>& rows, const std::vector<TapRun>& columns, int64_t kernel_width)
      : x_(x), y_(y), columns_(columns) {
    if (residual.defined()) residual_ = Image<Stored>(residual);
    for (const TapRun& row : rows)
      for (int64_t i = 0; i < row.count; ++i) rows_.emplace_back(&row, i);
    for (const TapRun& row : rows)
      for (const TapRun& column : columns) {
        std::vector<Offsets> taps;
        for (const Tap& above : row.taps)
          for (const Tap& beside : column.taps)
            taps.push_back({above.from * x_.row_stride + beside.from * x_.pixel_stride,
                            (above.index * kernel_width + beside.index) * x_.channels});
        taps_.push_back(std::move(taps));
      }
    first_run_ = rows.data();
  }

  int64_t rows() const { return std::ssize(rows_); }

  /// Calls `work` with each line of a row of an image.
  template <typename Work>
  void each(int64_t image, int64_t row, const Work& work) const {
    const auto [run, i] = rows_[row];
    const int64_t at = run->first + i * run->step;
    const Stored* x = x_.data + image * x_.image_stride + i * run->input_stride * x_.row_stride;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const TapRun& column = columns_[c];
      const std::vector<Offsets>& taps = taps_[(run - first_run_) * columns_.size() + c];
      work(Line<Stored>{.x = x,
                        .residual = residual_.data == nullptr
                                        ? nullptr
                                        : place(residual_, image, at, column.first),
                        .y = place(y_, image, at, column.first),
                        .x_pitch = column.input_stride * x_.pixel_stride,
                        .residual_pitch = column.step * residual_.pixel_stride,
                        .y_pitch = column.step * y_.pixel_stride,
                        .pixels = column.count,
                        .taps = taps.data(),
                        .tap_count = std::ssize(taps)});
    }
  }

 private:
  static Stored* place(const Image<Stored>& image, int64_t n, int64_t row, int64_t column) {
    return image.data + n * image.image_stride + row * image.row_stride +
           column * image.pixel_stride;
  }

  Image<Stored> x_, y_, residual_;
  const std::vector<TapRun>& columns_;
  std::vector<std::pair<const TapRun*, int64_t>> rows_;
  std::vector<std::vector<Offsets>> taps_;  // by run of rows and run of columns
  const TapRun* first_run_ = nullptr;
};

/// Returns weights tap by tap, the channels of each side by side: (H, W, channels).
at::Tensor by_tap(const at::Tensor& weight, c10::ScalarType type) {
  return weight.squeeze(1).permute({1, 2, 0}).to(type).contiguous();
}

}  // namespace

void multiply_depthwise(const TapProduct& product, InstructionSet set) {
  const int64_t channels = product.x.size(1);
  expects(product.y.size(1) == channels && product.weight.size(0) == channels &&
              product.weight.size(1) == 1,
          "each channel has a filter of its own");
  by_type(product.x.scalar_type(), [&]<typename Stored>(Stored) {
    using T = Wide<Stored>;
    constexpr auto type = c10::CppTypeToScalarType<T>::value;
    const at::Tensor weights = by_tap(product.weight, type);
    const at::Tensor bias =
        product.bias.defined() ? product.bias.to(type).contiguous() : at::zeros({channels}, type);
    const auto run =
        kernel_for<Stored, ConvolveLine, const Line<Stored>&, const T*, const T*, int64_t>(set);
    const Lines<Stored> lines(product.x, product.y, product.residual, product.rows, product.columns,
                              product.weight.size(3));
    const T *w = weights.template data_ptr<T>(), *b = bias.template data_ptr<T>();
    at::parallel_for(0, product.y.size(0) * lines.rows(),
                     rows_per_thread(product.y.size(3) * weights.numel()),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         lines.each(i / lines.rows(), i % lines.rows(),
                                    [&](const Line<Stored>& line) { run(line, w, b, channels); });
                     });
  });
}

void accumulate_depthwise_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                          const ImageWindows& windows, const at::Tensor& sums,
                                          InstructionSet set) {
  const auto rows = output_runs(windows[0], x.size(2), dy.size(2));
  const auto columns = output_runs(windows[1], x.size(3), dy.size(3));
  const int64_t channels = x.size(1);
  by_type(x.scalar_type(), [&]<typename Stored>(Stored) {
    using T = Wide<Stored>;
    const at::Tensor added = at::zeros({windows[0].kernel, windows[1].kernel, channels},
                                       c10::CppTypeToScalarType<T>::value);
    const auto run = kernel_for<Stored, AddLine, const Line<Stored>&, T*, int64_t, int64_t>(set);
    const Lines<Stored> lines(x, dy, {}, rows, columns, windows[1].kernel);
    T* sum = added.template data_ptr<T>();
    // Threads share out the channels, in whole vectors, so that no two add to the same sums.
    constexpr int64_t block = 64 / sizeof(T);
    at::parallel_for(0, divide_up(channels, block),
                     rows_per_thread(dy.numel() / channels * added.numel() / channels * block),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t image = 0; image < x.size(0); ++image)
                         for (int64_t row = 0; row < lines.rows(); ++row)
                           lines.each(image, row, [&](const Line<Stored>& line) {
                             run(line, sum, begin * block, std::min(end * block, channels));
                           });
                     });
    sums.add_(added.permute({2, 0, 1}).unsqueeze(1));
  });
}

}  // namespace mpi4dl
