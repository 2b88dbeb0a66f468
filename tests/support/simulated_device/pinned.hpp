#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

namespace mpi4dl::simulated {

/// Allocates host memory that devices copy to and from while the host goes on. What is freed is NaN
/// and is given out again, because pinning is slow; copies keep what they still use.
c10::Allocator& pinned_allocator();

/// Returns whether a tensor lies in such memory.
bool is_pinned(const at::Tensor& host);

}  // namespace mpi4dl::simulated
