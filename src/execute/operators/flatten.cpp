#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Flatten& /*op*/, const TileRun& run) {
  const at::Tensor& input = run.inputs[0].data;
  return with_backward(input.contiguous().flatten(1),
                       [shape = input.sizes().vec()](const at::Tensor& gradient) {
                         return Gradients{{gradient.reshape(shape)}, {}};
                       });
}

}  // namespace mpi4dl
