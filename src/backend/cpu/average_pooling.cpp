#include "backend/cpu/average_pooling.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "backend/channels_last.hpp"
#include "backend/cpu/by_type.hpp"
#include "backend/cpu/vectorised.hpp"
#include "base/expects.hpp"

namespace mpi4dl {
namespace {

/// Views the rows of an image batch, which have no gaps.
template <typename T>
struct Rows {
  T* data;
  int64_t image, row;  // strides

  explicit Rows(const at::Tensor& x) : data(x.data_ptr<T>()), image(x.stride(0)), row(x.stride(2)) {
    expects(x.dim() == 4 && is_channels_last(x), "images are (N, C, H, W) and channels-last");
  }
  T* at(int64_t n, int64_t h) const { return data + n * image + h * row; }
};

template <typename T, typename Sum>
[[gnu::always_inline]] inline void add_row(Sum* sum, const T* row, int64_t length) {
  MPI4DL_INDEPENDENT
  for (int64_t i = 0; i < length; ++i) sum[i] += widen(row[i]);
}

void expects_inside(const std::vector<ReceptiveRange>& ranges, int64_t length) {
  expects(!kChecked || std::all_of(ranges.begin(), ranges.end(),
                                   [length](const ReceptiveRange& range) {
                                     return range.begin >= 0 && range.end <= length;
                                   }),
          "ranges lie in the image");
}

/// Adds up an output row: first its input rows, into one row of sums; then the columns of that.
template <typename T>
void pool_row(const Rows<T>& x, int64_t n, const ReceptiveRange& range,
              const std::vector<ReceptiveRange>& cols, int64_t width, int64_t channels,
              std::vector<Wide<T>>& sums, T* y, InstructionSet set) {
  using W = Wide<T>;
  sums.assign((width + 1) * channels, W{0});
  W* column_sums = sums.data();
  W* pixel_sum = column_sums + width * channels;
  const ReceptiveRange* ranges = cols.data();
  const auto outputs = static_cast<int64_t>(cols.size());
  const W share = static_cast<W>(1 / range.divisor);
  vectorised(set, [=, &x, &range] {
    for (int64_t h = range.begin; h < range.end; ++h)
      add_row(column_sums, x.at(n, h), width * channels);
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t c = 0; c < channels; ++c) pixel_sum[c] = 0;
      for (int64_t w = ranges[o].begin; w < ranges[o].end; ++w)
        add_row(pixel_sum, column_sums + w * channels, channels);
      const W scale = share / static_cast<W>(ranges[o].divisor);
      MPI4DL_INDEPENDENT
      for (int64_t c = 0; c < channels; ++c)
        y[o * channels + c] = narrow_to<T>(pixel_sum[c] * scale);
    }
  });
}

/// Spreads a row of gradients: each output's share goes to its columns.
template <typename T>
void spread_row(const T* dy, int64_t pixel, const ReceptiveRange& range,
                const std::vector<ReceptiveRange>& cols, int64_t width, int64_t channels,
                Wide<T>* spread, InstructionSet set) {
  using W = Wide<T>;
  const ReceptiveRange* ranges = cols.data();
  const auto outputs = static_cast<int64_t>(cols.size());
  const W share = static_cast<W>(1 / range.divisor);
  vectorised(set, [=] {
    for (int64_t i = 0; i < width * channels; ++i) spread[i] = 0;
    for (int64_t o = 0; o < outputs; ++o) {
      const W scale = share / static_cast<W>(ranges[o].divisor);
      for (int64_t w = ranges[o].begin; w < ranges[o].end; ++w) {
        MPI4DL_INDEPENDENT
        for (int64_t c = 0; c < channels; ++c)
          spread[w * channels + c] += widen(dy[o * pixel + c]) * scale;
      }
    }
  });
}

/// Adds up the spread rows of all outputs that read input row h.
template <typename T>
void sum_rows(const Wide<T>* spread, const std::vector<ReceptiveRange>& rows, int64_t h,
              int64_t length, std::vector<Wide<T>>& sums, T* dx, InstructionSet set) {
  using W = Wide<T>;
  sums.assign(length, W{0});
  W* sum = sums.data();
  const ReceptiveRange* ranges = rows.data();
  const auto outputs = static_cast<int64_t>(rows.size());
  vectorised(set, [=] {
    for (int64_t o = 0; o < outputs; ++o)
      if (ranges[o].begin <= h && h < ranges[o].end) add_row(sum, spread + o * length, length);
    MPI4DL_INDEPENDENT
    for (int64_t i = 0; i < length; ++i) dx[i] = narrow_to<T>(sum[i]);
  });
}

}  // namespace

bool has_average_pooling(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return x.dim() == 4 && x.numel() > 0 &&
         (type == at::kFloat || type == at::kDouble || type == at::kBFloat16) &&
         is_channels_last(x) && (x.size(3) == 1 || x.stride(3) == x.size(1));
}

void average_pool(const at::Tensor& x, const std::vector<ReceptiveRange>& rows,
                  const std::vector<ReceptiveRange>& cols, const at::Tensor& y,
                  InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::average_pool");
  const int64_t channels = x.size(1), width = x.size(3);
  const auto height = static_cast<int64_t>(rows.size());
  expects(has_average_pooling(x), "rows of x are channels-last without gaps");
  expects(y.is_contiguous(at::MemoryFormat::ChannelsLast) && y.size(2) == height &&
              y.size(3) == std::ssize(cols) && y.size(1) == channels,
          "y is dense and has a row and a column for each range");
  expects_inside(rows, x.size(2));
  expects_inside(cols, width);
  by_type(x.scalar_type(), [&]<typename T>(T) {
    const Rows<T> source(x), target(y);
    at::parallel_for(0, x.size(0) * height, 1, [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sums;
      for (int64_t i = begin; i < end; ++i)
        pool_row<T>(source, i / height, rows[i % height], cols, width, channels, sums,
                    target.at(i / height, i % height), set);
    });
  });
}

void average_pool_backward(const at::Tensor& dy, const std::vector<ReceptiveRange>& rows,
                           const std::vector<ReceptiveRange>& cols, const at::Tensor& dx,
                           InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::average_pool_backward");
  const int64_t channels = dx.size(1), width = dx.size(3), height = dx.size(2);
  const int64_t length = width * channels, pixel = dy.size(3) == 1 ? channels : dy.stride(3);
  const auto outputs = static_cast<int64_t>(rows.size());
  expects(dx.is_contiguous(at::MemoryFormat::ChannelsLast) && dy.size(2) == outputs &&
              dy.size(3) == std::ssize(cols) && dy.size(1) == channels,
          "dx is dense, and dy has a row and a column for each range");
  expects_inside(rows, height);
  expects_inside(cols, width);
  by_type(dx.scalar_type(), [&]<typename T>(T) {
    const at::Tensor spread =
        at::empty({dx.size(0) * outputs * length}, c10::CppTypeToScalarType<Wide<T>>::value);
    Wide<T>* all = spread.data_ptr<Wide<T>>();
    const Rows<T> source(dy), target(dx);
    at::parallel_for(0, dx.size(0) * outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        spread_row<T>(source.at(i / outputs, i % outputs), pixel, rows[i % outputs], cols, width,
                      channels, all + i * length, set);
    });
    at::parallel_for(0, dx.size(0) * height, 1, [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sums;
      for (int64_t i = begin; i < end; ++i)
        sum_rows<T>(all + i / height * outputs * length, rows, i % height, length, sums,
                    target.at(i / height, i % height), set);
    });
  });
}

}  // namespace mpi4dl
