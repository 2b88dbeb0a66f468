#pragma once

#include <ATen/core/Tensor.h>

namespace mpi4dl {

/// Returns the type for sums and statistics: half types have too few digits for them.
inline c10::ScalarType wide_type(c10::ScalarType type) {
  const bool half = type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Half;
  return half ? c10::ScalarType::Float : type;
}

/// Calls `work` with a pointer to the elements of a host tensor of a wide type.
template <typename Work>
void with_elements(const at::Tensor& tensor, Work&& work) {
  if (tensor.scalar_type() == at::kDouble) {
    work(tensor.data_ptr<double>());
  } else {
    work(tensor.data_ptr<float>());
  }
}

}  // namespace mpi4dl
