#include "ops/kernels/weight_sums.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "geometry/interval.hpp"
#include "ops/kernels/image.hpp"
#include "ops/kernels/register_tiles.hpp"
#include "ops/kernels/row_reader.hpp"

namespace mpi4dl {
namespace {

/// Pixels whose products are summed before they are added to those of others: enough to make up
/// for the adding, and few enough for the first cache.
constexpr int64_t kPixelsAtOnce = 64;

template <typename T, typename Stored>
class WeightGradient {
 public:
  WeightGradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows)
      : x_(x), dy_(dy), windows_(windows), tiles_(outer_tiles<T>(x.size(1))) {}

  /// Of the rows [begin, end) of all images, to sums (out, H, W, in).
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
  void add_rows_of_image(int64_t image, const Interval& rows, T* sums) {
    x_rows_ = x_reader_.read(image, intersect(windows_[0].need(rows), {0, x_.height}));
    dy_rows_ = dy_reader_.read(image, rows);
    const int64_t columns_at_once = std::min(dy_.width, kPixelsAtOnce);
    const int64_t rows_at_once =
        std::max<int64_t>(1, kPixelsAtOnce / std::max<int64_t>(dy_.width, 1));
    for (int64_t row = rows.begin; row < rows.end; row += rows_at_once)
      for (int64_t column = 0; column < dy_.width; column += columns_at_once)
        add_block({row, std::min(row + rows_at_once, rows.end)},
                  {column, std::min(column + columns_at_once, dy_.width)}, sums);
  }

  void add_block(const Interval& rows, const Interval& columns, T* sums) {
    const auto [height, width] = std::pair(windows_[0].kernel, windows_[1].kernel);
    const int64_t sum_pitch = height * width * x_.channels;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        find_pairs(rows, columns, y, x);
        if (pairs_.empty()) continue;
        T* tap = sums + (y * width + x) * x_.channels;
        for (int64_t first = 0; first < x_.channels; first += tiles_.width)
          add_panel(first, tap + first, sum_pitch);
      }
  }

  /// Where outputs of the block read something through this tap: one stretch a row.
  void find_pairs(const Interval& rows, const Interval& columns, int64_t tap_y, int64_t tap_x) {
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
          {x_rows_.at(from, begin * along.stride + shift), dy_rows_.at(row, begin), end - begin});
    }
  }

  void add_panel(int64_t first, T* sums, int64_t sum_pitch) {
    OuterProduct<T> product{.pairs = pairs_.data(),
                            .pair_count = std::ssize(pairs_),
                            .x_pitch = windows_[1].stride * x_rows_.pixel_stride,
                            .g_pitch = dy_rows_.pixel_stride,
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
    tiles_.add(product);
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

  Image<Stored> x_, dy_;
  RowReader<T, Stored> x_reader_{x_}, dy_reader_{dy_};
  ImageRows<T> x_rows_, dy_rows_;
  ImageWindows windows_;
  const OuterTiles<T>& tiles_;
  std::vector<PixelPairs<T>> pairs_, filled_pairs_;
  std::vector<T> filled_;
};

}  // namespace

template <typename T, typename Stored>
void sum_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                         const at::Tensor& sums) {
  ensure(sums.is_contiguous(at::MemoryFormat::ChannelsLast),
         "gradients of a weight are summed up with channels side by side");
  const int64_t grain = rows_per_thread(sums.numel() * dy.size(3));
  const int64_t rows = dy.size(0) * dy.size(2);
  const int64_t shares = std::min<int64_t>(at::get_num_threads(), divide_up(rows, grain));
  std::vector<at::Tensor> by_thread{sums};  // made here: only this thread's memory is metered
  while (std::ssize(by_thread) < shares) by_thread.push_back(at::zeros_like(sums));
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    WeightGradient<T, Stored>(x, dy, windows)
        .add_rows(begin, end, by_thread[at::get_thread_num()].data_ptr<T>());
  });
  for (size_t thread = 1; thread < by_thread.size(); ++thread) sums.add_(by_thread[thread]);
}

template void sum_weight_gradient<float>(const at::Tensor& x, const at::Tensor& dy,
                                         const ImageWindows& windows, const at::Tensor& sums);
template void sum_weight_gradient<float, c10::BFloat16>(const at::Tensor& x, const at::Tensor& dy,
                                                        const ImageWindows& windows,
                                                        const at::Tensor& sums);
template void sum_weight_gradient<double>(const at::Tensor& x, const at::Tensor& dy,
                                          const ImageWindows& windows, const at::Tensor& sums);

}  // namespace mpi4dl
