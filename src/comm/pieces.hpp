#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mpi4dl {

/// Runs `call(offset, count)` over [0, total) in pieces that MPI can count in an int.
template <typename Call>
void in_pieces(int64_t total, int64_t largest, Call&& call) {
  for (int64_t offset = 0; offset < total; offset += largest)
    call(offset, static_cast<int>(std::min(largest, total - offset)));
}

/// Returns where the elements of a dense tensor begin.
inline std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace mpi4dl
