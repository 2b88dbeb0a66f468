#include "backend/cpu/tap_products.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "backend/cpu/by_type.hpp"
#include "backend/cpu/image.hpp"
#include "backend/cpu/row_reader.hpp"
#include "backend/cpu/tuning.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {
namespace {

/// Holds weights (out, in, H, W) in panels of NR columns, each tap by tap and row by row. Forward,
/// a row is an input channel and a column an output channel; in backward-data it is the other way
/// round, and the last tap comes first: it reads the first of the pixels.
template <typename T>
class Panels {
 public:
  Panels(const at::Tensor& weight, bool backward_data, const Microkernel& kernel)
      : weight_(weight),
        backward_data_(backward_data),
        row_axis_(backward_data ? 0 : 1),
        column_axis_(backward_data ? 1 : 0),
        kernel_(kernel) {
    const int64_t count = divide_up(weight.size(column_axis_), kernel.width);
    const int64_t taps = weight.size(2) * weight.size(3), rows = weight.size(row_axis_);
    const int64_t bytes = taps * rows * kernel.width * static_cast<int64_t>(sizeof(T));
    at_once_ = std::clamp<int64_t>(kTuning.packed_bytes / std::max<int64_t>(bytes, 1), 1, count);
    packed_ = at::empty({at_once_, taps, rows, kernel.width},
                        weight.options().memory_format(at::MemoryFormat::Contiguous));
  }

  /// Returns the columns of all panels that are packed at the same time (NC).
  int64_t columns_at_once() const { return at_once_ * kernel_.width; }
  int64_t size() const { return packed_.numel(); }

  /// Returns where the weights of a tap are in a panel.
  int64_t tap_offset(int64_t y, int64_t x) const {
    const int64_t tap = y * weight_.size(3) + x;
    return (backward_data_ ? weight_.size(2) * weight_.size(3) - 1 - tap : tap) * packed_.stride(1);
  }

  /// Packs the panels of the columns from `first` on. In backward-data a row is a filter, one piece
  /// of memory: some filters are read as a whole before the next ones are.
  void pack(int64_t first) {
    first_ = first;
    const int64_t rows = weight_.size(row_axis_),
                  at_once = backward_data_ ? kTuning.filters_at_once : rows;
    const int64_t end = std::min(first + columns_at_once(), weight_.size(column_axis_));
    for (int64_t row = 0; row < rows; row += at_once)
      for (int64_t column = first; column < end; column += kernel_.width)
        pack({row, std::min(row + at_once, rows)}, {column, std::min(column + kernel_.width, end)});
  }

  /// Returns the panel that begins with this column, which is packed.
  const T* panel(int64_t column) const { return packed_.data_ptr<T>() + panel_offset(column); }

 private:
  /// Packs some rows of all taps of a panel.
  void pack(const Interval& rows, const Interval& columns) {
    const T* weights = weight_.data_ptr<T>() + rows.begin * weight_.stride(row_axis_) +
                       columns.begin * weight_.stride(column_axis_);
    T* panel = packed_.data_ptr<T>() + panel_offset(columns.begin) + rows.begin * kernel_.width;
    for (int64_t y = 0; y < weight_.size(2); ++y)
      for (int64_t x = 0; x < weight_.size(3); ++x)
        kernel_.pack({weights + y * weight_.stride(2) + x * weight_.stride(3), rows.length(),
                      weight_.stride(row_axis_), columns.length(), weight_.stride(column_axis_)},
                     kernel_.width, panel + tap_offset(y, x));
  }

  int64_t panel_offset(int64_t column) const {
    return (column - first_) / kernel_.width * packed_.stride(0);
  }

  at::Tensor weight_, packed_;
  bool backward_data_;
  int64_t row_axis_, column_axis_;
  const Microkernel& kernel_;
  int64_t at_once_ = 0, first_ = 0;
};

/// Holds rows of one image that are computed through the same taps.
struct RowPiece {
  int64_t image;
  const TapRun* rows;
  int64_t begin, end;  // of the run's positions
};

/// Visits the pieces of all images' rows [begin, end), counted run by run, each of some rows at
/// most.
template <typename Work>
void visit_pieces(const std::vector<TapRun>& runs, int64_t height, int64_t begin, int64_t end,
                  int64_t at_once, Work&& work) {
  int64_t at = begin / height * height;
  for (int64_t image = begin / height; at < end; ++image)
    for (const TapRun& run : runs) {
      const int64_t from = std::max(begin - at, int64_t{0}), to = std::min(end - at, run.count);
      for (int64_t row = from; row < to; row += at_once)
        work(RowPiece{image, &run, row, std::min(row + at_once, to)});
      at += run.count;
    }
}

template <typename T, typename Stored>
class TapProducts {
 public:
  TapProducts(const TapProduct& product, const Microkernel& kernel)
      : x_(product.x),
        y_(product.y),
        residual_(product.residual.defined() ? Image<Stored>(product.residual) : Image<Stored>()),
        kernel_(kernel),
        panels_(product.weight, product.backward_data, kernel_),
        bias_(round_up(y_.channels, kernel_.width), 0),
        backward_data_(product.backward_data),
        rows_(product.rows),
        columns_(product.columns) {
    if (product.bias.defined())
      for (int64_t channel = 0; channel < y_.channels; ++channel)
        bias_[channel] = widen(product.bias.data_ptr<T>()[channel * product.bias.stride(0)]);
  }

  void run(int64_t images) {
    const int64_t grain = rows_per_thread(panels_.size() * y_.width);
    for (channels_.begin = 0; channels_.begin < y_.channels; channels_.begin = channels_.end) {
      channels_.end = std::min(channels_.begin + panels_.columns_at_once(), y_.channels);
      panels_.pack(channels_.begin);
      at::parallel_for(0, images * y_.height, grain,
                       [&](int64_t begin, int64_t end) { multiply_rows(begin, end); });
    }
  }

 private:
  /// Describes pixels in a row, or rows: how far apart they are, and how many.
  struct Line {
    int64_t x_pitch, y_pitch, residual_pitch, length;
  };
  /// Says where the pixels of a piece begin.
  struct Start {
    const T* x;
    const Stored* residual;
    Stored* y;
  };

  /// Computes, of all images' rows [begin, end), the channels whose panels are packed.
  void multiply_rows(int64_t begin, int64_t end) const {
    std::vector<TapOffset> taps;
    RowReader<T, Stored> reader(x_, kernel_.set);
    visit_pieces(rows_, y_.height, begin, end, reader.rows_at_once(), [&](const RowPiece& piece) {
      const ImageRows<T> x =
          reader.read(piece.image, piece.rows->receptive_range(piece.begin, piece.end));
      for (const TapRun& columns : columns_) multiply(x, piece, columns, taps);
    });
  }

  void multiply(const ImageRows<T>& x, const RowPiece& piece, const TapRun& columns,
                std::vector<TapOffset>& taps) const {
    const TapRun& rows = *piece.rows;
    find_taps(x, rows, columns, taps);
    const Line along_x{columns.input_stride * x.pixel_stride, columns.step * y_.pixel_stride,
                       columns.step * residual_.pixel_stride, columns.count};
    const Line along_y{rows.input_stride * x.row_stride, rows.step * y_.row_stride,
                       rows.step * residual_.row_stride, piece.end - piece.begin};
    const auto start_of = [&](const Image<Stored>& image) {
      return image.data + piece.image * image.image_stride +
             (rows.first + piece.begin * rows.step) * image.row_stride +
             columns.first * image.pixel_stride;
    };
    const Start start{
        .x = x.data,
        .residual = residual_.data == nullptr ? nullptr : start_of(residual_),
        .y = start_of(y_),
    };
    // Along the longer side, so that tiles are full at the image's left and right border too.
    if (along_x.length >= std::min<int64_t>(along_y.length, kTuning.short_line)) {
      multiply(start, along_x, along_y, taps);
    } else {
      multiply(start, along_y, along_x, taps);
    }
  }

  void multiply(const Start& start, const Line& line, const Line& lines,
                const std::vector<TapOffset>& taps) const {
    const int64_t bytes = line.length * x_.channels * static_cast<int64_t>(sizeof(T));
    const int64_t at_once =
        std::max<int64_t>(1, kTuning.cached_bytes / std::max<int64_t>(bytes, 1));
    for (int64_t begin = 0; begin < lines.length; begin += at_once)
      for (int64_t first = channels_.begin; first < channels_.end; first += kernel_.width)
        for (int64_t i = begin; i < std::min(begin + at_once, lines.length); ++i)
          kernel_.run({.x = start.x + i * lines.x_pitch,
                       .x_pitch = line.x_pitch,
                       .taps = taps.data(),
                       .tap_count = static_cast<int64_t>(taps.size()),
                       .panel = panels_.panel(first),
                       .bias = bias_.data() + first,
                       .residual = start.residual == nullptr
                                       ? nullptr
                                       : start.residual + i * lines.residual_pitch + first,
                       .residual_pitch = line.residual_pitch,
                       .y = start.y + i * lines.y_pitch + first,
                       .y_pitch = line.y_pitch,
                       .y_channels = std::min(kernel_.width, y_.channels - first),
                       .pixels = line.length});
  }

  /// Finds the taps of two runs, in the order of the pixels that they read.
  void find_taps(const ImageRows<T>& x, const TapRun& rows, const TapRun& columns,
                 std::vector<TapOffset>& taps) const {
    const auto in_order = [this](const std::vector<Tap>& some, size_t i) {
      return some[backward_data_ ? some.size() - 1 - i : i];
    };
    taps.clear();
    for (size_t i = 0; i < rows.taps.size(); ++i)
      for (size_t j = 0; j < columns.taps.size(); ++j) {
        const Tap first = in_order(rows.taps, 0);  // x begins with what it reads
        const Tap row = in_order(rows.taps, i), column = in_order(columns.taps, j);
        const TapOffset tap{(row.from - first.from) * x.row_stride + column.from * x.pixel_stride,
                            panels_.tap_offset(row.index, column.index), x_.channels};
        if (!taps.empty() && continues(taps.back(), tap)) {
          taps.back().channels += tap.channels;
        } else {
          taps.push_back(tap);
        }
      }
  }

  /// Returns true where the tap's pixels and weights follow those of the last one without a gap.
  bool continues(const TapOffset& last, const TapOffset& tap) const {
    return tap.pixel == last.pixel + last.channels &&
           tap.weight == last.weight + last.channels * kernel_.width;
  }

  Image<Stored> x_, y_, residual_;
  const Microkernel& kernel_;
  Panels<T> panels_;
  Interval channels_;  // whose panels are packed
  std::vector<Wide<T>> bias_;
  bool backward_data_;
  const std::vector<TapRun>&rows_, &columns_;
};

}  // namespace

void multiply_taps(const TapProduct& product, const Microkernel& kernel) {
  expects(product.x.scalar_type() == kernel.stored && product.y.scalar_type() == kernel.stored,
          "the microkernel is one for images of this type");
  expects(product.weight.scalar_type() == kernel.operand &&
              (!product.bias.defined() || product.bias.scalar_type() == kernel.operand),
          "weight and bias have the type of the microkernel's operands");
  expects(product.x.size(1) == product.weight.size(product.backward_data ? 0 : 1) &&
              product.y.size(1) == product.weight.size(product.backward_data ? 1 : 0) &&
              product.x.size(0) == product.y.size(0),
          "channels of x and y are those of the weight");
  expects(product.x.size(1) % kernel.k_unit == 0, "channels come in multiples of k_unit");
  expects(!product.residual.defined() || product.residual.sizes() == product.y.sizes(),
          "the residual is as large as y");
  const int64_t images = product.y.size(0);
  if (kernel.operand == kernel.stored) {
    by_type(kernel.stored, [&]<typename T>(T) { TapProducts<T, T>(product, kernel).run(images); });
  } else {
    ensure(kernel.stored == at::kBFloat16 && kernel.operand == at::kFloat,
           "only images of bfloat16 are multiplied as float32");
    TapProducts<float, c10::BFloat16>(product, kernel).run(images);
  }
}

}  // namespace mpi4dl
