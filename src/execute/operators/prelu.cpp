#include <ATen/ATen.h>

#include "execute/channels.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {

/// Computes max(x, 0) + slope * min(x, 0): libtorch's choice between two tensors is slow.
template <>
TileResult run_tile(const PRelu& /*op*/, const TileRun& run) {
  const at::Tensor input = run.inputs[0].data;
  const at::Tensor slope = per_channel(run.parameters[0], input.dim());
  const at::Tensor output = input.clamp_min(0).addcmul_(input.clamp_max(0), slope);
  return with_backward(output, [input, slope, trained = run.trains(0)](const at::Tensor& gradient) {
    const at::Tensor of_positive = at::threshold_backward(gradient, input, 0);
    Gradients result{{at::addcmul(of_positive, gradient - of_positive, slope)}, {at::Tensor()}};
    const auto all = slope.sizes();
    if (trained)
      result.parameters[0] = at::sum_to(input.clamp_max(0).mul_(gradient), all).flatten();
    return result;
  });
}

}  // namespace mpi4dl
