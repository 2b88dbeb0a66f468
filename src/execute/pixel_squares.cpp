#include "execute/pixel_squares.hpp"

#include <ATen/ATen.h>

namespace mpi4dl {

// Channels are last in memory, before and after.

at::Tensor spread_channels(const at::Tensor& x, int64_t factor) {
  const int64_t images = x.size(0), height = x.size(2), width = x.size(3);
  const int64_t channels = x.size(1) / (factor * factor);
  return x.permute({0, 2, 3, 1})
      .reshape({images, height, width, channels, factor, factor})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape({images, height * factor, width * factor, channels})
      .permute({0, 3, 1, 2});
}

at::Tensor gather_squares(const at::Tensor& x, int64_t factor) {
  const int64_t images = x.size(0), height = x.size(2) / factor, width = x.size(3) / factor;
  const int64_t channels = x.size(1) * factor * factor;
  return x.permute({0, 2, 3, 1})
      .reshape({images, height, factor, width, factor, x.size(1)})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape({images, height, width, channels})
      .permute({0, 3, 1, 2});
}

}  // namespace mpi4dl
