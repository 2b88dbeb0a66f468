#pragma once

#include <cstdint>

namespace mpi4dl {

constexpr double mebibytes(double bytes) {
  return bytes / (1024.0 * 1024.0);
}
constexpr double mebibytes(int64_t bytes) {
  return mebibytes(static_cast<double>(bytes));
}

}  // namespace mpi4dl
