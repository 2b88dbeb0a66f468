#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Linear& op, const TileRun& run) {
  const at::Tensor input = run.inputs[0].data, weight = run.parameters[0];
  const at::Tensor output = at::linear(input, weight, op.bias ? run.parameters[1] : at::Tensor());
  return with_backward(output, [input, weight, trains_weight = run.trains(0),
                                bias = op.bias](const at::Tensor& gradient) {
    Gradients gradients{{gradient.mm(weight)}, {at::Tensor()}};
    if (trains_weight) gradients.parameters[0] = gradient.t().mm(input);
    if (bias) gradients.parameters.push_back(gradient.sum(0));
    return gradients;
  });
}

}  // namespace mpi4dl
