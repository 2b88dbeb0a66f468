#include "ops/kernels/convolution.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <vector>

#include "ops/kernels/register_tiles.hpp"
#include "ops/kernels/tap_runs.hpp"

namespace mpi4dl {
namespace {

/// What a thread reads over and over should stay in its second cache.
constexpr int64_t kCachedBytes = 256 * 1024;
/// Pixels whose products are summed before they are added to those of others: enough to make up
/// for the adding, and few enough for the first cache.
constexpr int64_t kPixelsAtOnce = 64;
/// Less work is not worth another thread.
constexpr int64_t kOperationsPerThread = 1 << 20;

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// An image batch in memory: channels side by side, the rest by strides.
template <typename T>
struct Image {
  Image() = default;
  explicit Image(const at::Tensor& tensor)
      : data(tensor.data_ptr<T>()),
        channels(tensor.size(1)),
        height(tensor.size(2)),
        width(tensor.size(3)),
        image_stride(tensor.stride(0)),
        row_stride(tensor.stride(2)),
        pixel_stride(tensor.stride(3)) {}

  T* data = nullptr;
  int64_t channels = 0, height = 0, width = 0, image_stride = 0, row_stride = 0, pixel_stride = 0;
};

/// Writes `width` numbers for each of `rows`: number `column` of row `row` from
/// `from[row * row_stride + column * column_stride]`. What is missing becomes zero.
template <typename T>
void pack_rows(const T* from, int64_t rows, int64_t row_stride, int64_t columns,
               int64_t column_stride, int64_t width, T* to) {
  if (columns < width) std::fill(to, to + rows * width, T{0});
  if (column_stride == 1) {
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from + row * row_stride, columns, to + row * width);
    return;
  }
  // In small squares, so that both sides stay in the first cache.
  constexpr int64_t kSquare = 16;
  for (int64_t first = 0; first < rows; first += kSquare)
    for (int64_t column = 0; column < columns; ++column) {
      const T* numbers = from + column * column_stride;
      for (int64_t row = first; row < std::min(first + kSquare, rows); ++row)
        to[row * width + column] = numbers[row * row_stride];
    }
}

/// Weights (out, in, H, W) in panels of `width` columns, each tap by tap and row by row.
/// Convolving, a row is an input channel and a column an output channel; going back it is the other
/// way round.
template <typename T>
at::Tensor pack_panels(const at::Tensor& weight, bool back, int64_t width) {
  const int64_t row_axis = back ? 0 : 1, column_axis = back ? 1 : 0;
  const int64_t rows = weight.size(row_axis), columns = weight.size(column_axis);
  const int64_t height = weight.size(2), across = weight.size(3);
  at::Tensor packed = at::empty({divide_up(columns, width), height * across, rows, width},
                                weight.options().memory_format(at::MemoryFormat::Contiguous));
  T* to = packed.data_ptr<T>();
  for (int64_t first = 0; first < columns; first += width)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < across; ++x, to += rows * width)
        pack_rows(weight.data_ptr<T>() + y * weight.stride(2) + x * weight.stride(3) +
                      first * weight.stride(column_axis),
                  rows, weight.stride(row_axis), std::min(width, columns - first),
                  weight.stride(column_axis), width, to);
  return packed;
}

/// Rows of one image that are computed through the same taps.
struct RowPiece {
  int64_t image;
  const TapRun* rows;
  int64_t begin, end;  // of the run's positions
};

/// The pieces of all images' rows [begin, end), counted run by run.
template <typename Work>
void visit_pieces(const std::vector<TapRun>& runs, int64_t height, int64_t begin, int64_t end,
                  Work&& work) {
  int64_t at = begin / height * height;
  for (int64_t image = begin / height; at < end; ++image)
    for (const TapRun& run : runs) {
      const int64_t from = std::max(begin - at, int64_t{0}), to = std::min(end - at, run.count);
      if (from < to) work(RowPiece{image, &run, from, to});
      at += run.count;
    }
}

/// Every position of y is a sum over taps of x times weights: convolution, and also the way back.
template <typename T>
class TapProducts {
 public:
  TapProducts(const at::Tensor& x, const at::Tensor& weight, bool back, const at::Tensor& bias,
              const at::Tensor& addend, const at::Tensor& y, std::vector<TapRun> rows,
              std::vector<TapRun> columns)
      : x_(x),
        y_(y),
        addend_(addend.defined() ? Image<T>(addend) : Image<T>()),
        tiles_(register_tiles<T>(y.size(1))),
        packed_(pack_panels<T>(weight, back, tiles_.width)),
        bias_(divide_up(y.size(1), tiles_.width) * tiles_.width, T{0}),
        kernel_width_(weight.size(3)),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {
    if (bias.defined())
      for (int64_t channel = 0; channel < y_.channels; ++channel)
        bias_[channel] = bias.data_ptr<T>()[channel * bias.stride(0)];
  }

  void run(int64_t images) const {
    const int64_t operations = packed_.numel() * y_.width;
    const int64_t grain = divide_up(kOperationsPerThread, std::max<int64_t>(operations, 1));
    at::parallel_for(0, images * y_.height, grain, [&](int64_t begin, int64_t end) {
      std::vector<TapOffset> taps;
      visit_pieces(rows_, y_.height, begin, end, [&](const RowPiece& piece) {
        for (const TapRun& columns : columns_) multiply(piece, columns, taps);
      });
    });
  }

 private:
  /// Pixels in a row, or rows: how far apart they are, and how many.
  struct Line {
    int64_t x_pitch, y_pitch, addend_pitch, length;
  };
  /// Where the pixels of a piece begin.
  struct Start {
    const T *x, *addend;
    T* y;
  };

  void multiply(const RowPiece& piece, const TapRun& columns, std::vector<TapOffset>& taps) const {
    const TapRun& rows = *piece.rows;
    find_taps(rows, columns, taps);
    const Line along{columns.pace * x_.pixel_stride, columns.step * y_.pixel_stride,
                     columns.step * addend_.pixel_stride, columns.count};
    const Line down{rows.pace * x_.row_stride, rows.step * y_.row_stride,
                    rows.step * addend_.row_stride, piece.end - piece.begin};
    const auto start_of = [&](const Image<T>& image) {
      return image.data + piece.image * image.image_stride +
             (rows.first + piece.begin * rows.step) * image.row_stride +
             columns.first * image.pixel_stride;
    };
    const Start start{
        .x = x_.data + piece.image * x_.image_stride + piece.begin * down.x_pitch,
        .addend = addend_.data == nullptr ? nullptr : start_of(addend_),
        .y = start_of(y_),
    };
    // Along the longer side, so that tiles are full at the image's left and right border too.
    if (along.length >= std::min<int64_t>(down.length, kShortLine)) {
      multiply(start, along, down, taps);
    } else {
      multiply(start, down, along, taps);
    }
  }

  void multiply(const Start& start, const Line& line, const Line& lines,
                const std::vector<TapOffset>& taps) const {
    const int64_t bytes = line.length * x_.channels * static_cast<int64_t>(sizeof(T));
    const int64_t at_once = std::max<int64_t>(1, kCachedBytes / std::max<int64_t>(bytes, 1));
    const int64_t panel_size = packed_.stride(0);
    for (int64_t begin = 0; begin < lines.length; begin += at_once)
      for (int64_t first = 0; first < y_.channels; first += tiles_.width)
        for (int64_t i = begin; i < std::min(begin + at_once, lines.length); ++i)
          tiles_.multiply({.x = start.x + i * lines.x_pitch,
                           .x_pitch = line.x_pitch,
                           .channels = x_.channels,
                           .taps = taps.data(),
                           .tap_count = static_cast<int64_t>(taps.size()),
                           .panel = packed_.data_ptr<T>() + first / tiles_.width * panel_size,
                           .bias = bias_.data() + first,
                           .addend = start.addend == nullptr
                                         ? nullptr
                                         : start.addend + i * lines.addend_pitch + first,
                           .addend_pitch = line.addend_pitch,
                           .y = start.y + i * lines.y_pitch + first,
                           .y_pitch = line.y_pitch,
                           .y_channels = std::min(tiles_.width, y_.channels - first),
                           .pixels = line.length});
  }

  void find_taps(const TapRun& rows, const TapRun& columns, std::vector<TapOffset>& taps) const {
    taps.clear();
    for (const Tap& row : rows.taps)
      for (const Tap& column : columns.taps)
        taps.push_back({row.from * x_.row_stride + column.from * x_.pixel_stride,
                        (row.index * kernel_width_ + column.index) * packed_.stride(1)});
  }

  static constexpr int64_t kShortLine = 6;

  Image<T> x_, y_, addend_;
  const RegisterTiles<T>& tiles_;
  at::Tensor packed_;
  std::vector<T> bias_;
  int64_t kernel_width_;
  std::vector<TapRun> rows_, columns_;
};

/// Sums over pixels of gradients times what their taps have read.
template <typename T>
class WeightGradient {
 public:
  WeightGradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows)
      : x_(x), dy_(dy), windows_(windows), tiles_(register_tiles<T>(x.size(1))) {}

  /// Of the rows [begin, end) of all images, to sums (out, H, W, in).
  void add_rows(int64_t begin, int64_t end, T* sums) {
    const int64_t columns_at_once = std::min(dy_.width, kPixelsAtOnce);
    const int64_t rows_at_once =
        std::max<int64_t>(1, kPixelsAtOnce / std::max<int64_t>(dy_.width, 1));
    for (int64_t row = begin; row < end;) {
      const int64_t image = row / dy_.height, first = row % dy_.height;
      const int64_t rows = std::min({rows_at_once, end - row, dy_.height - first});
      for (int64_t column = 0; column < dy_.width; column += columns_at_once)
        add_block(image, {first, first + rows},
                  {column, std::min(column + columns_at_once, dy_.width)}, sums);
      row += rows;
    }
  }

 private:
  void add_block(int64_t image, const Interval& rows, const Interval& columns, T* sums) {
    const auto [height, width] = std::pair(windows_[0].kernel, windows_[1].kernel);
    const int64_t sum_pitch = height * width * x_.channels;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        find_pairs(image, rows, columns, y, x);
        if (pairs_.empty()) continue;
        T* tap = sums + (y * width + x) * x_.channels;
        for (int64_t first = 0; first < x_.channels; first += tiles_.width)
          add_panel(first, tap + first, sum_pitch);
      }
  }

  /// Where outputs of the block read something through this tap: one stretch a row.
  void find_pairs(int64_t image, const Interval& rows, const Interval& columns, int64_t tap_y,
                  int64_t tap_x) {
    pairs_.clear();
    const Window &down = windows_[0], &along = windows_[1];
    const int64_t shift = tap_x * along.dilation - along.padding;
    const int64_t begin =
        std::max(columns.begin, divide_up(std::max<int64_t>(-shift, 0), along.stride));
    const int64_t readable = x_.width - shift;  // output * stride must be below this
    const int64_t end =
        std::min(columns.end, readable <= 0 ? 0 : divide_up(readable, along.stride));
    if (begin >= end) return;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t from = row * down.stride + tap_y * down.dilation - down.padding;
      if (from < 0 || from >= x_.height) continue;
      pairs_.push_back(
          {x_.data + image * x_.image_stride + from * x_.row_stride +
               (begin * along.stride + shift) * x_.pixel_stride,
           dy_.data + image * dy_.image_stride + row * dy_.row_stride + begin * dy_.pixel_stride,
           end - begin});
    }
  }

  void add_panel(int64_t first, T* sums, int64_t sum_pitch) {
    OuterProduct<T> product{.pairs = pairs_.data(),
                            .pair_count = std::ssize(pairs_),
                            .x_pitch = windows_[1].stride * x_.pixel_stride,
                            .g_pitch = dy_.pixel_stride,
                            .x_offset = first,
                            .g_offset = 0,
                            .rows = dy_.channels,
                            .columns = std::min(tiles_.width, x_.channels - first),
                            .sum = sums,
                            .sum_pitch = sum_pitch};
    if (product.columns < tiles_.width) {
      product.pairs = fill_up(first, product.columns, product.x_pitch);
      product.x_pitch = tiles_.width;
      product.x_offset = 0;
    }
    tiles_.add_outer(product);
  }

  /// Copies the last channels of the pairs' pixels to where a whole tile of them can be read.
  const PixelPairs<T>* fill_up(int64_t first, int64_t channels, int64_t pitch) {
    filled_.assign(static_cast<size_t>(kPixelsAtOnce * tiles_.width), T{0});
    filled_pairs_ = pairs_;
    T* to = filled_.data();
    for (PixelPairs<T>& pair : filled_pairs_) {
      const T* from = std::exchange(pair.x, to) + first;
      for (int64_t pixel = 0; pixel < pair.pixels; ++pixel, to += tiles_.width)
        std::copy_n(from + pixel * pitch, channels, to);
    }
    return filled_pairs_.data();
  }

  Image<T> x_, dy_;
  ImageWindows windows_;
  const RegisterTiles<T>& tiles_;
  std::vector<PixelPairs<T>> pairs_, filled_pairs_;
  std::vector<T> filled_;
};

template <typename T>
at::Tensor sum_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                               const ImageWindows& windows) {
  const auto zeros = [&] {
    return at::zeros({weight.size(0), weight.size(2), weight.size(3), weight.size(1)},
                     weight.options().memory_format(at::MemoryFormat::Contiguous));
  };
  const int64_t operations = weight.numel() * dy.size(3);
  const int64_t grain = divide_up(kOperationsPerThread, std::max<int64_t>(operations, 1));
  const int64_t rows = dy.size(0) * dy.size(2);
  const int64_t shares = std::min<int64_t>(at::get_num_threads(), divide_up(rows, grain));
  std::vector<at::Tensor> by_thread;  // made here: only this thread's memory is metered
  for (int64_t share = 0; share < std::max<int64_t>(shares, 1); ++share)
    by_thread.push_back(zeros());
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    WeightGradient<T>(x, dy, windows)
        .add_rows(begin, end, by_thread[at::get_thread_num()].data_ptr<T>());
  });
  for (size_t thread = 1; thread < by_thread.size(); ++thread) by_thread[0].add_(by_thread[thread]);
  return by_thread[0].permute({0, 3, 1, 2});
}

template <typename Work>
auto by_wide_type(const at::Tensor& tensor, Work&& work) {
  return tensor.scalar_type() == at::kDouble ? work(double{}) : work(float{});
}

/// Some processors multiply bfloat16 twice as fast as float32, and oneDNN knows how.
bool has_bfloat16_instructions() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16;
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.defined() && narrow(tensor) ? tensor.to(at::kFloat) : tensor;
}

/// What is added can come from anywhere, so its channels may lie apart.
at::Tensor side_by_side(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.stride(1) == 1 || tensor.size(1) == 1) return tensor;
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

/// Calls `work` with memory for the result in a type that the kernels compute with.
template <typename Work>
void write_to(const at::Tensor& result, Work&& work) {
  if (!narrow(result)) return work(result);
  const at::Tensor wide =
      at::empty(result.sizes(),
                result.options().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  work(wide);
  result.copy_(wide);
}

}  // namespace

bool has_convolution_kernel(const at::Tensor& input, const at::Tensor& weight, int64_t groups) {
  const auto type = input.scalar_type();
  return input.is_cpu() && input.dim() == 4 && groups == 1 && weight.scalar_type() == type &&
         (input.stride(1) == 1 || input.size(1) == 1) &&
         (type == at::kFloat || type == at::kDouble ||
          (type == at::kBFloat16 && !has_bfloat16_instructions()));
}

void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& addend, const at::Tensor& y) {
  RECORD_USER_SCOPE("mpi4dl::convolve");
  const at::Tensor input = widened(x), weights = widened(weight), biases = widened(bias),
                   more = widened(side_by_side(addend));
  write_to(y, [&](const at::Tensor& output) {
    by_wide_type(input, [&]<typename T>(T) {
      TapProducts<T>(input, weights, /*back=*/false, biases, more, output,
                     output_runs(windows[0], x.size(2), y.size(2)),
                     output_runs(windows[1], x.size(3), y.size(3)))
          .run(x.size(0));
    });
  });
}

void convolve_back(const at::Tensor& dy, const at::Tensor& weight, const ImageWindows& windows,
                   const at::Tensor& dx) {
  RECORD_USER_SCOPE("mpi4dl::convolve_back");
  const at::Tensor gradient = widened(dy), weights = widened(weight);
  write_to(dx, [&](const at::Tensor& result) {
    by_wide_type(gradient, [&]<typename T>(T) {
      TapProducts<T>(gradient, weights, /*back=*/true, {}, {}, result,
                     input_runs(windows[0], dx.size(2), dy.size(2)),
                     input_runs(windows[1], dx.size(3), dy.size(3)))
          .run(dx.size(0));
    });
  });
}

at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                           const ImageWindows& windows) {
  RECORD_USER_SCOPE("mpi4dl::weight_gradient");
  const at::Tensor input = widened(x), gradient = widened(dy), weights = widened(weight);
  return by_wide_type(input, [&]<typename T>(T) {
    return sum_weight_gradient<T>(input, gradient, weights, windows);
  });
}

}  // namespace mpi4dl
