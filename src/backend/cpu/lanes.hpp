#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>
#include <type_traits>

#include "backend/cpu/vectorised.hpp"

namespace mpi4dl {

template <typename T, int count>
struct VectorOf {
  typedef T type __attribute__((vector_size(count * sizeof(T)), aligned(sizeof(T)), may_alias));
};

/// Loads and stores vectors of `bytes`, in gcc's vector types, of elements that are computed with
/// in their wide type.
template <typename Stored, int bytes>
struct Lanes {
  using T = Wide<Stored>;
  static constexpr int count = bytes / static_cast<int>(sizeof(T));
  using Vector = VectorOf<T, count>::type;

  // By reference: without the instructions for them, vectors cannot be returned.

  [[gnu::always_inline]] static void load(const Stored* from, Vector& value) {
    if constexpr (count == 1) {
      value[0] = widen(*from);
    } else if constexpr (std::is_same_v<T, Stored>) {
      value = *reinterpret_cast<const Vector*>(from);
    } else {
      value = (Vector)(__builtin_convertvector(*reinterpret_cast<const Half*>(from), Bits) << 16);
    }
  }

  /// Rounds as narrow_to does.
  [[gnu::always_inline]] static void store(const Vector& value, Stored* to) {
    if constexpr (count == 1) {
      *to = narrow_to<Stored>(value[0]);
    } else if constexpr (std::is_same_v<T, Stored>) {
      *reinterpret_cast<Vector*>(to) = value;
    } else {
      constexpr uint32_t kNotANumber = 0x7fc0, kHalf = 0x7fff;
      const Bits bits = (Bits)value, numbers = (Bits)(value == value);
      const Bits rounded = (bits + kHalf + ((bits >> 16) & 1)) >> 16;
      *reinterpret_cast<Half*>(to) =
          __builtin_convertvector((rounded & numbers) | (kNotANumber & ~numbers), Half);
    }
  }

 private:
  using Bits = VectorOf<uint32_t, count>::type;
  using Half = VectorOf<uint16_t, count>::type;
};

}  // namespace mpi4dl
