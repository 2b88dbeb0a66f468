#pragma once

#include <cstdint>

namespace mpi4dl {

// What kernels take at a time, so that it stays in the second cache of a core.

/// Pixels that a thread reads over and over.
inline constexpr int64_t kCachedBytes = 256 << 10;

/// A panel of weights that all pixels are multiplied with: wider ones are not made.
inline constexpr int64_t kPanelBytes = 1 << 20;

/// Convolutions read their weights in another order, packed. The last layers of a network have few
/// pixels and large weights, of which no second copy should exist: so no more than this is packed
/// at a time, or one panel, where that is larger.
inline constexpr int64_t kPackedBytes = 512 << 10;

}  // namespace mpi4dl
