#include "ops/kernels/average_pooling.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "ops/kernels/by_type.hpp"
#include "ops/kernels/memory_order.hpp"
#include "ops/kernels/vectorised.hpp"

namespace mpi4dl {
namespace {

/// Rows of an image batch: where one begins.
template <typename T>
struct Rows {
  T* data;
  int64_t image, row;  // strides

  explicit Rows(const at::Tensor& x)
      : data(x.data_ptr<T>()), image(x.stride(0)), row(x.stride(2)) {}
  T* at(int64_t n, int64_t h) const { return data + n * image + h * row; }
};

template <typename T, typename Sum>
inline void add_row(Sum* sum, const T* row, int64_t length) {
  MPI4DL_INDEPENDENT
  for (int64_t i = 0; i < length; ++i) sum[i] += widen(row[i]);
}

/// First down the rows, into one row of sums; then along it.
template <typename T>
void pool_row(const Rows<T>& x, int64_t n, const Reach& reach, const std::vector<Reach>& cols,
              int64_t width, int64_t channels, std::vector<Wide<T>>& sums, T* y) {
  using W = Wide<T>;
  sums.assign((width + 1) * channels, W{0});
  W* down = sums.data();
  W* along = down + width * channels;
  const Reach* reaches = cols.data();
  const auto outputs = static_cast<int64_t>(cols.size());
  const W share = static_cast<W>(1 / reach.divisor);
  vectorised([=, &x, &reach] {
    for (int64_t h = reach.begin; h < reach.end; ++h) add_row(down, x.at(n, h), width * channels);
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t c = 0; c < channels; ++c) along[c] = 0;
      for (int64_t w = reaches[o].begin; w < reaches[o].end; ++w)
        add_row(along, down + w * channels, channels);
      const W scale = share / static_cast<W>(reaches[o].divisor);
      MPI4DL_INDEPENDENT
      for (int64_t c = 0; c < channels; ++c) y[o * channels + c] = narrow_to<T>(along[c] * scale);
    }
  });
}

/// Along a row: each output's share goes to its columns.
template <typename T>
void spread_row(const T* dy, int64_t pixel, const Reach& reach, const std::vector<Reach>& cols,
                int64_t width, int64_t channels, Wide<T>* spread) {
  using W = Wide<T>;
  const Reach* reaches = cols.data();
  const auto outputs = static_cast<int64_t>(cols.size());
  const W share = static_cast<W>(1 / reach.divisor);
  vectorised([=] {
    for (int64_t i = 0; i < width * channels; ++i) spread[i] = 0;
    for (int64_t o = 0; o < outputs; ++o) {
      const W scale = share / static_cast<W>(reaches[o].divisor);
      for (int64_t w = reaches[o].begin; w < reaches[o].end; ++w) {
        MPI4DL_INDEPENDENT
        for (int64_t c = 0; c < channels; ++c)
          spread[w * channels + c] += widen(dy[o * pixel + c]) * scale;
      }
    }
  });
}

template <typename T>
void sum_rows(const Wide<T>* spread, const std::vector<Reach>& rows, int64_t h, int64_t length,
              std::vector<Wide<T>>& sums, T* dx) {
  using W = Wide<T>;
  sums.assign(length, W{0});
  W* sum = sums.data();
  const Reach* reaches = rows.data();
  const auto outputs = static_cast<int64_t>(rows.size());
  vectorised([=] {
    for (int64_t o = 0; o < outputs; ++o)
      if (reaches[o].begin <= h && h < reaches[o].end) add_row(sum, spread + o * length, length);
    MPI4DL_INDEPENDENT
    for (int64_t i = 0; i < length; ++i) dx[i] = narrow_to<T>(sum[i]);
  });
}

}  // namespace

bool has_average_pooling(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return x.is_cpu() && x.dim() == 4 && x.numel() > 0 &&
         (type == at::kFloat || type == at::kDouble || type == at::kBFloat16) &&
         channels_side_by_side(x) && (x.size(3) == 1 || x.stride(3) == x.size(1));
}

void average_pool(const at::Tensor& x, const std::vector<Reach>& rows,
                  const std::vector<Reach>& cols, const at::Tensor& y) {
  RECORD_USER_SCOPE("mpi4dl::average_pool");
  const int64_t channels = x.size(1), width = x.size(3);
  const auto height = static_cast<int64_t>(rows.size());
  by_type(x, [&]<typename T>(T) {
    const Rows<T> source(x), target(y);
    at::parallel_for(0, x.size(0) * height, 1, [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sums;
      for (int64_t i = begin; i < end; ++i)
        pool_row<T>(source, i / height, rows[i % height], cols, width, channels, sums,
                    target.at(i / height, i % height));
    });
  });
}

void average_pool_backward(const at::Tensor& dy, const std::vector<Reach>& rows,
                           const std::vector<Reach>& cols, const at::Tensor& dx) {
  RECORD_USER_SCOPE("mpi4dl::average_pool_backward");
  const int64_t channels = dx.size(1), width = dx.size(3), height = dx.size(2);
  const int64_t length = width * channels, pixel = dy.size(3) == 1 ? channels : dy.stride(3);
  const auto outputs = static_cast<int64_t>(rows.size());
  by_type(dx, [&]<typename T>(T) {
    const at::Tensor spread =
        at::empty({dx.size(0) * outputs * length}, c10::CppTypeToScalarType<Wide<T>>::value);
    Wide<T>* all = spread.data_ptr<Wide<T>>();
    const Rows<T> source(dy), target(dx);
    at::parallel_for(0, dx.size(0) * outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        spread_row<T>(source.at(i / outputs, i % outputs), pixel, rows[i % outputs], cols, width,
                      channels, all + i * length);
    });
    at::parallel_for(0, dx.size(0) * height, 1, [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> sums;
      for (int64_t i = begin; i < end; ++i)
        sum_rows<T>(all + i / height * outputs * length, rows, i % height, length, sums,
                    target.at(i / height, i % height));
    });
  });
}

}  // namespace mpi4dl
