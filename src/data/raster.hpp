#pragma once

#include <cstdint>
#include <functional>

#include "geometry/interval.hpp"

namespace mpi4dl {

/// Gives the pixels of one opened image: 8-bit RGB, from top to bottom, so that a large image need
/// not be in memory as a whole.
class Raster {
 public:
  /// Takes one row: three bytes for each of the columns asked for.
  using RowSink = std::function<void(int64_t row, const uint8_t* rgb)>;

  virtual ~Raster() = default;
  virtual int64_t height() const = 0;
  virtual int64_t width() const = 0;
  /// Hands over these columns of each of these rows, in ascending order; may be called once only.
  virtual void scan(const Interval& rows, const Interval& cols, const RowSink& take) = 0;
};

}  // namespace mpi4dl
