#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Identity& /*op*/, const TileRun& run) {
  return with_backward(run.inputs[0].data,
                       [](const at::Tensor& gradient) { return Gradients{{gradient}, {}}; });
}

}  // namespace mpi4dl
