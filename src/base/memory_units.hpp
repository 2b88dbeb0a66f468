#pragma once

#include <cstdint>

namespace mpi4dl {

/// The units in which processors and the kernel deal with memory, in bytes.
inline constexpr int64_t kCacheLine = 64;
inline constexpr int64_t kPage = int64_t{4} << 10;
inline constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace mpi4dl
