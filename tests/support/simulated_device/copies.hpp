#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl::simulated {

/// Copies between the host and a device, on a device, and between two. Returns the target.
at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking);

}  // namespace mpi4dl::simulated
