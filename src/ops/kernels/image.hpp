#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/rounding.hpp"

namespace mpi4dl {

/// An image batch in memory: channels side by side, the rest by strides.
template <typename T>
struct Image {
  Image() = default;
  explicit Image(const at::Tensor& tensor)
      : data(tensor.data_ptr<T>()),
        channels(tensor.size(1)),
        height(tensor.size(2)),
        width(tensor.size(3)),
        image_stride(tensor.stride(0)),
        row_stride(tensor.stride(2)),
        pixel_stride(tensor.stride(3)) {}

  T* data = nullptr;
  int64_t channels = 0, height = 0, width = 0, image_stride = 0, row_stride = 0, pixel_stride = 0;
};

/// How many rows are worth another thread, if one takes so many multiplications.
inline int64_t rows_per_thread(int64_t operations) {
  constexpr int64_t kOperationsPerThread = 1 << 20;
  return divide_up(kOperationsPerThread, operations > 0 ? operations : 1);
}

}  // namespace mpi4dl
