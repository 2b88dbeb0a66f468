#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>
#include <type_traits>

/// Before a loop whose iterations do not read what others write; clang finds out by itself.
#if defined(__GNUC__) && !defined(__clang__)
#define MPI4DL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define MPI4DL_INDEPENDENT
#endif

namespace mpi4dl {

/// Runs a loop that was compiled for several generations of processors and is chosen when the
/// program starts: one binary runs everywhere and as fast as it can.
template <typename Loop>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), gnu::flatten]]
#endif
void vectorised(const Loop& loop) {
  loop();
}

/// What kernels compute with: half types have too few digits.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
inline Wide<T> widen(T value) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.x) << 16);
  } else {
    return value;
  }
}

/// To the nearest, ties to even; written without branches, for the sake of vectors.
template <typename T>
inline T narrow_to(Wide<T> value) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    constexpr uint32_t kNotANumber = 0x7fc0, kHalf = 0x7fff;
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + kHalf + ((bits >> 16) & 1)) >> 16;
    return c10::BFloat16(static_cast<uint16_t>(value == value ? rounded : kNotANumber),
                         c10::BFloat16::from_bits());
  } else {
    return value;
  }
}

}  // namespace mpi4dl
