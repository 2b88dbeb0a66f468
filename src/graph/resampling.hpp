#pragma once

#include <array>
#include <cstdint>

#include "geometry/interval.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

enum class Interpolation { nearest, nearest_exact, bilinear, bicubic };

template <>
inline constexpr std::array kWords<Interpolation>{
    Word{"nearest", Interpolation::nearest}, Word{"nearest_exact", Interpolation::nearest_exact},
    Word{"bilinear", Interpolation::bilinear}, Word{"bicubic", Interpolation::bicubic}};

/// Says how one axis of an image is resampled.
///
/// Where outputs lie between inputs is computed as PyTorch 2 does, rounding included: on axes of
/// tens of thousands of pixels, another order of the same operations moves them by percents of a
/// pixel. Positions count from the image's first pixel, so tiles agree.
struct Resampling {
  /// Names the type of positions: that of the pixels, or float32 for half types. Nearest ones are
  /// always computed in float32.
  enum class Precision { single, twofold };
  /// Mixture is what one output is mixed from, in the order of the inputs; some may be the same.
  struct Mixture {
    std::array<int64_t, 4> inputs;
    std::array<double, 4> weights;
  };

  int64_t inputs = 1, outputs = 1;  ///< lengths of the axis before and after
  double factor = 0;                ///< that was asked for; 0: a length was
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;

  /// Returns how many inputs an output is mixed from.
  int taps() const;
  /// Returns whether every output is the input of the same number.
  bool is_copy() const;
  Mixture mixture(int64_t output, Precision precision) const;
  /// Returns the inputs that a range of outputs reads, whatever the precision.
  Interval need(const Interval& range) const;
};

}  // namespace mpi4dl
