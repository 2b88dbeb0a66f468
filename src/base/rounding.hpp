#pragma once

#include <cstdint>

namespace mpi4dl {

/// Divides and rounds up; neither may be negative.
constexpr int64_t divide_up(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

constexpr int64_t round_up(int64_t number, int64_t unit) {
  return divide_up(number, unit) * unit;
}

}  // namespace mpi4dl
