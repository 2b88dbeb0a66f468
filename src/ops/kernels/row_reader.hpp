#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/rounding.hpp"
#include "geometry/interval.hpp"
#include "ops/kernels/cache_bytes.hpp"
#include "ops/kernels/image.hpp"
#include "ops/kernels/vectorised.hpp"

namespace mpi4dl {

/// Rows of an image, from the `first` on.
template <typename T>
struct ImageRows {
  const T* at(int64_t row, int64_t column) const {
    return data + (row - first) * row_stride + column * pixel_stride;
  }

  const T* data = nullptr;
  int64_t first = 0, row_stride = 0, pixel_stride = 0;
};

/// Reads rows of images as the numbers that kernels compute with: where they lie, or, where they
/// are stored as others, as a copy that lasts until the next rows are read.
template <typename T, typename Stored>
class RowReader {
 public:
  explicit RowReader(const Image<Stored>& images) : images_(images) {}

  /// How many rows to read at once: copies should stay in the cache.
  int64_t rows_at_once() const {
    if constexpr (!kCopies) return std::numeric_limits<int64_t>::max() / 2;
    const int64_t bytes = row_length() * static_cast<int64_t>(sizeof(T));
    return std::max<int64_t>(1, kCachedBytes / std::max<int64_t>(bytes, 1));
  }

  /// Of the rows that are read.
  int64_t pixel_stride() const { return kCopies ? images_.channels : images_.pixel_stride; }

  ImageRows<T> read(int64_t image, const Interval& rows) {
    const Stored* from =
        images_.data + image * images_.image_stride + rows.begin * images_.row_stride;
    if constexpr (!kCopies) {
      return {from, rows.begin, images_.row_stride, pixel_stride()};
    } else {
      T* copy = room(rows.length() * row_length());
      for (int64_t row = 0; row < rows.length(); ++row)
        copy_row(from + row * images_.row_stride, copy + row * row_length());
      return {copy, rows.begin, row_length(), pixel_stride()};
    }
  }

 private:
  static constexpr bool kCopies = !std::is_same_v<T, Stored>;

  /// What vectors are read from begins with a line of the cache.
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  T* room(int64_t numbers) {
    const auto lines =
        static_cast<size_t>(divide_up(numbers * static_cast<int64_t>(sizeof(T)), sizeof(Line)));
    if (copy_.size() < lines) copy_.resize(lines);
    return reinterpret_cast<T*>(copy_.data());
  }

  int64_t row_length() const { return images_.width * images_.channels; }

  void copy_row(const Stored* from, T* to) const {
    const bool gapless = images_.pixel_stride == images_.channels;
    const int64_t pieces = gapless ? 1 : images_.width;
    const int64_t length = gapless ? row_length() : images_.channels;
    vectorised([&] {
      for (int64_t piece = 0; piece < pieces; ++piece) {
        MPI4DL_INDEPENDENT
        for (int64_t i = 0; i < length; ++i)
          to[piece * length + i] = widen(from[piece * images_.pixel_stride + i]);
      }
    });
  }

  Image<Stored> images_;
  std::vector<Line> copy_;
};

}  // namespace mpi4dl
