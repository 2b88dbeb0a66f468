#include "execute/channels.hpp"

#include <ATen/ATen.h>

namespace mpi4dl {

at::Tensor at_every_pixel(at::Tensor values, int64_t axes) {
  while (values.dim() < axes) values = values.unsqueeze(-1);
  return values;
}

at::Tensor per_channel(const at::Tensor& values, int64_t axes) {
  std::vector<int64_t> shape(axes, 1);
  shape[1] = -1;
  return values.view(shape);
}

at::Tensor sum_over_pixels(const at::Tensor& map) {
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < map.dim(); ++axis) axes.push_back(axis);
  return map.sum(axes);
}

}  // namespace mpi4dl
