#pragma once

#include <c10/core/ScalarType.h>

namespace mpi4dl {

/// The type for sums and statistics: half types have too few digits for them.
inline c10::ScalarType wide_type(c10::ScalarType type) {
  const bool half = type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Half;
  return half ? c10::ScalarType::Float : type;
}

}  // namespace mpi4dl
