#pragma once

#include <c10/core/ScalarType.h>

#include "base/error.hpp"

namespace mpi4dl {

/// Calls `work` with a value of a type, for types that kernels know.
template <typename Work>
void by_type(c10::ScalarType type, Work&& work) {
  switch (type) {
    case at::kFloat:
      return work(float{});
    case at::kDouble:
      return work(double{});
    case at::kBFloat16:
      return work(c10::BFloat16{});
    default:
      throw Error(fmt::format("there is no kernel for {}", c10::toString(type)));
  }
}

}  // namespace mpi4dl
