#pragma once

#include <ATen/core/Tensor.h>

#include "base/error.hpp"

namespace mpi4dl {

/// Calls `work` with a value of the tensor's type, for types that kernels know.
template <typename Work>
void by_type(const at::Tensor& tensor, Work&& work) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return work(float{});
    case at::kDouble:
      return work(double{});
    case at::kBFloat16:
      return work(c10::BFloat16{});
    default:
      throw Error("no kernel for this type");
  }
}

}  // namespace mpi4dl
