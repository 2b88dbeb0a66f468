#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

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

/// How far apart the pixels of rows may be. Where a few channels of many pixels are read over and
/// over, they should not share a few sets of the first cache, as those a power of two apart do.
enum class Spacing { any, spread };

/// Reads rows of images as the numbers that kernels compute with: where they lie, or, where they
/// are stored as others or not spread, as a copy that lasts until the next rows are read.
template <typename T, typename Stored>
class RowReader {
 public:
  explicit RowReader(const Image<Stored>& images, Spacing spacing = Spacing::any)
      : images_(images) {
    const bool spread = spacing == Spacing::spread;
    copies_ = !std::is_same_v<T, Stored> || (spread && collide(images.pixel_stride));
    if (!copies_) {
      pitch_ = images.pixel_stride;
    } else {
      pitch_ = images.channels + (spread && collide(images.channels) ? kLineNumbers : 0);
    }
  }

  /// How many rows to read at once: copies should stay in the cache.
  int64_t rows_at_once() const {
    if (!copies_) return std::numeric_limits<int64_t>::max() / 2;
    const int64_t bytes = row_length() * static_cast<int64_t>(sizeof(T));
    return std::max<int64_t>(1, kCachedBytes / std::max<int64_t>(bytes, 1));
  }

  /// Of the rows that are read.
  int64_t pixel_stride() const { return pitch_; }

  ImageRows<T> read(int64_t image, const Interval& rows) {
    const Stored* from =
        images_.data + image * images_.image_stride + rows.begin * images_.row_stride;
    if constexpr (std::is_same_v<T, Stored>)
      if (!copies_) return {from, rows.begin, images_.row_stride, pitch_};
    T* copy = room(rows.length() * row_length());
    for (int64_t row = 0; row < rows.length(); ++row)
      copy_row(from + row * images_.row_stride, copy + row * row_length());
    return {copy, rows.begin, row_length(), pitch_};
  }

 private:
  /// What vectors are read from begins with a line of the cache.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr int64_t kLineNumbers = sizeof(Line) / sizeof(T);

  /// Of four lines, pixels this far apart always use the same one.
  static bool collide(int64_t pitch) { return pitch % (4 * kLineNumbers) == 0; }

  T* room(int64_t numbers) {
    const auto lines =
        static_cast<size_t>(divide_up(numbers * static_cast<int64_t>(sizeof(T)), sizeof(Line)));
    if (std::exchange(lines_, std::max(lines, lines_)) < lines)
      copy_ = std::make_unique_for_overwrite<Line[]>(lines);
    return reinterpret_cast<T*>(copy_.get());
  }

  int64_t row_length() const { return images_.width * pitch_; }

  void copy_row(const Stored* from, T* to) const {
    const bool gapless = images_.pixel_stride == images_.channels && pitch_ == images_.channels;
    const int64_t pieces = gapless ? 1 : images_.width;
    const int64_t length = gapless ? row_length() : images_.channels;
    vectorised([&] {
      for (int64_t piece = 0; piece < pieces; ++piece) {
        MPI4DL_INDEPENDENT
        for (int64_t i = 0; i < length; ++i)
          to[piece * pitch_ + i] = widen(from[piece * images_.pixel_stride + i]);
      }
    });
  }

  Image<Stored> images_;
  bool copies_ = false;
  int64_t pitch_ = 0;  // from pixel to pixel of the rows that are read
  std::unique_ptr<Line[]> copy_;
  size_t lines_ = 0;
};

}  // namespace mpi4dl
