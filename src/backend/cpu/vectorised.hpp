#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/compiled_for.hpp"
#include "base/instruction_set.hpp"

/// Stands before a loop whose iterations do not read what others write; clang finds out by itself,
/// at run time.
#if defined(__GNUC__) && !defined(__clang__)
#define MPI4DL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define MPI4DL_INDEPENDENT
#endif

namespace mpi4dl {

/// Wraps a loop as compiled_for() wants it.
template <typename Loop>
struct LoopKernel {
  [[gnu::always_inline]] static void run(const Loop& loop) { loop(); }
};

/// Runs a loop as it was compiled for an instruction set: one binary runs everywhere, and as fast
/// as it can. Functions that the loop calls should be always_inline.
template <typename Loop>
void vectorised(InstructionSet set, const Loop& loop) {
  compiled_for<LoopKernel<Loop>, const Loop&>(set)(loop);
}

template <typename Loop>
void vectorised(const Loop& loop) {
  vectorised(instruction_set(), loop);
}

/// Kernels compute with these: half types have too few digits.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
[[gnu::always_inline]] inline Wide<T> widen(T value) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.x) << 16);
  } else {
    return value;
  }
}

/// Rounds to the nearest, ties to even, without branches, so that loops become vectors.
template <typename T>
[[gnu::always_inline]] inline T narrow_to(Wide<T> value) {
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
