#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl::baseline {

/// Waits until the device has computed this tensor, and whatever it was given before.
inline void wait_for(const at::Tensor& tensor) {
  tensor.flatten()[0].item();
}

}  // namespace mpi4dl::baseline
