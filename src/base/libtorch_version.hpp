#pragma once

#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mpi4dl {

// What differs between libtorch 1.13 and 2.x, in one place.

/// How libtorch counts bytes when it reports memory.
using ReportedBytes = std::conditional_t<(TORCH_VERSION_MAJOR >= 2), size_t, int64_t>;

}  // namespace mpi4dl
