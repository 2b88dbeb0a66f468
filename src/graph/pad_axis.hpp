#pragma once

#include <cstdint>

#include "geometry/interval.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

enum class PadMode { constant, reflect, replicate, circular };

template <>
inline constexpr std::array kWords<PadMode>{
    Word{"constant", PadMode::constant}, Word{"reflect", PadMode::reflect},
    Word{"replicate", PadMode::replicate}, Word{"circular", PadMode::circular}};

/// Says how one axis is padded; negative numbers cut off.
struct PadAxis {
  int64_t length = 1;  ///< of the input
  int64_t before = 0, after = 0;
  PadMode mode = PadMode::constant;

  int64_t outputs() const { return before + length + after; }
  /// Returns the inputs that are not cut off.
  Interval kept() const;
  /// Returns the input that an output is; of constant padding, a place beyond the input.
  int64_t source(int64_t output) const;
  /// Returns the smallest interval that contains the inputs that these outputs are. With circular
  /// padding, it is the whole axis where they are from both ends.
  Interval need(const Interval& range) const;
};

}  // namespace mpi4dl
