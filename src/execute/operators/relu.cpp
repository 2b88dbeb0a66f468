#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Relu& /*op*/, const TileRun& run) {
  at::Tensor output = run.target;
  if (output.defined()) {
    at::clamp_min_out(output, run.inputs[0].data, 0);
  } else {
    output = run.inputs[0].data.clamp_min(0);
  }
  return with_backward(output, [output](const at::Tensor& gradient) {
    return Gradients{{at::threshold_backward(gradient, output, 0)}, {}};
  });
}

}  // namespace mpi4dl
