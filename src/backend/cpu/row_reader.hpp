#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "backend/cpu/image.hpp"
#include "backend/cpu/tuning.hpp"
#include "backend/cpu/vectorised.hpp"
#include "base/expects.hpp"
#include "base/memory_units.hpp"
#include "base/rounding.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

/// Views rows of an image, from the `first` on.
template <typename T>
struct ImageRows {
  const T* at(int64_t row, int64_t column) const {
    return data + (row - first) * row_stride + column * pixel_stride;
  }

  const T* data = nullptr;
  int64_t first = 0, row_stride = 0, pixel_stride = 0;
};

/// Says how far apart the pixels of rows may be. Where a few channels of many pixels are read over
/// and over, they should not alias in L1, as those a power of two apart do.
enum class Spacing { any, spread };

/// Reads rows of images as the operands that microkernels take: where they lie, or, where they are
/// stored in another type or alias, as a copy that lasts until the next rows are read.
template <typename T, typename Stored>
class RowReader {
 public:
  RowReader(const Image<Stored>& images, InstructionSet set, Spacing spacing = Spacing::any)
      : images_(images), set_(set) {
    const bool spread = spacing == Spacing::spread;
    copies_ = !std::is_same_v<T, Stored> || (spread && alias(images.pixel_stride));
    if (!copies_) {
      pitch_ = images.pixel_stride;
    } else {
      pitch_ = images.channels + (spread && alias(images.channels) ? kLineElements : 0);
    }
  }

  /// Returns how many rows to read at once: copies should stay in L2.
  int64_t rows_at_once() const {
    if (!copies_) return std::numeric_limits<int64_t>::max() / 2;
    const int64_t bytes = row_length() * static_cast<int64_t>(sizeof(T));
    return std::max<int64_t>(1, kTuning.cached_bytes / std::max<int64_t>(bytes, 1));
  }

  /// Returns the distance of pixels in the rows that are read, in elements.
  int64_t pixel_stride() const { return pitch_; }

  ImageRows<T> read(int64_t image, const Interval& rows) {
    expects(rows.begin >= 0 && rows.end <= images_.height, "rows are those of the image");
    const Stored* from =
        images_.data + image * images_.image_stride + rows.begin * images_.row_stride;
    if constexpr (std::is_same_v<T, Stored>)
      if (!copies_) return {from, rows.begin, images_.row_stride, pitch_};
    T* copy = buffer(rows.length() * row_length());
    for (int64_t row = 0; row < rows.length(); ++row)
      copy_row(from + row * images_.row_stride, copy + row * row_length());
    return {copy, rows.begin, row_length(), pitch_};
  }

 private:
  /// Line is a cache line: vectors are read from a buffer that begins with one.
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine];
  };
  static constexpr int64_t kLineElements = sizeof(Line) / sizeof(T);

  /// Pixels alias in L1 where their distance is a multiple of 4 lines.
  static bool alias(int64_t pitch) { return pitch % (4 * kLineElements) == 0; }

  T* buffer(int64_t elements) {
    const auto lines =
        static_cast<size_t>(divide_up(elements * static_cast<int64_t>(sizeof(T)), sizeof(Line)));
    if (std::exchange(lines_, std::max(lines, lines_)) < lines)
      copy_ = std::make_unique_for_overwrite<Line[]>(lines);
    return reinterpret_cast<T*>(copy_.get());
  }

  int64_t row_length() const { return images_.width * pitch_; }

  void copy_row(const Stored* from, T* to) const {
    const bool gapless = images_.pixel_stride == images_.channels && pitch_ == images_.channels;
    const int64_t pieces = gapless ? 1 : images_.width;
    const int64_t length = gapless ? row_length() : images_.channels;
    vectorised(set_, [&] {
      for (int64_t piece = 0; piece < pieces; ++piece) {
        MPI4DL_INDEPENDENT
        for (int64_t i = 0; i < length; ++i)
          to[piece * pitch_ + i] = widen(from[piece * images_.pixel_stride + i]);
      }
    });
  }

  Image<Stored> images_;
  InstructionSet set_;
  bool copies_ = false;
  int64_t pitch_ = 0;  // from pixel to pixel of the rows that are read
  std::unique_ptr<Line[]> copy_;
  size_t lines_ = 0;
};

}  // namespace mpi4dl
