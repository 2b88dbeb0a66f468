#pragma once

#include <cstdint>

namespace mpi4dl {

/// Convolutions read their weights in another order, packed. The last layers of a network have few
/// pixels and large weights, of which no second copy should exist: so no more than this is packed
/// at a time, or one panel, where that is larger.
inline constexpr int64_t kPackedBytes = 512 << 10;

}  // namespace mpi4dl
