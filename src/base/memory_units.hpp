#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/rounding.hpp"

namespace mpi4dl {

/// These are the units in which processors and the kernel deal with memory, in bytes.
inline constexpr int64_t kCacheLine = 64;
inline constexpr int64_t kPage = int64_t{4} << 10;
inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// Returns what our allocators give out to whoever asks for so many bytes. Sizes come in classes,
/// eight for each power of two, so that what is left of a piece is of use.
constexpr int64_t block_bytes(int64_t bytes) {
  const int64_t pages = round_up(std::max<int64_t>(bytes, 1), kPage);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(pages)));
  return round_up(pages, std::max(kPage, power / 8));
}

/// The convolutions of the CPU read weights in another order, packed. The last layers of a network
/// have few pixels and large weights, of which no second copy should exist: no more than this is
/// packed at a time, or one panel where that is larger. Plans count it.
inline constexpr int64_t kPackedBytes = 512 << 10;

}  // namespace mpi4dl
