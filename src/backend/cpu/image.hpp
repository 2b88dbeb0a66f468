#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backend/cpu/tuning.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"

namespace mpi4dl {

/// Views a channels-last image batch in memory: channels are contiguous, the rest has strides.
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
        pixel_stride(tensor.stride(3)) {
    expects(tensor.dim() == 4 && (channels <= 1 || tensor.stride(1) == 1),
            "images are (N, C, H, W) and channels-last");
    expects(data != nullptr || tensor.numel() == 0, "images have memory");
  }

  T* data = nullptr;
  int64_t channels = 0, height = 0, width = 0, image_stride = 0, row_stride = 0, pixel_stride = 0;
};

/// Returns how many rows are worth another thread, if one takes so many multiplications.
inline int64_t rows_per_thread(int64_t operations) {
  return divide_up(kTuning.operations_per_thread, operations > 0 ? operations : 1);
}

}  // namespace mpi4dl
