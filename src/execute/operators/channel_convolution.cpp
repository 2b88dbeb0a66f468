#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

/// Libtorch has this as a convolution of an image with one channel and one axis.
template <>
TileResult run_tile(const ChannelConvolution& op, const TileRun& run) {
  const at::Tensor input = run.inputs[0].data, weight = run.parameters[0];
  const at::Tensor bias = op.bias ? run.parameters[1] : at::Tensor();
  const std::vector<int64_t> padding{op.kernel / 2};
  const at::Tensor output = at::convolution(input.unsqueeze(1), weight, bias, {1}, padding, {1},
                                            /*transposed=*/false, {0}, /*groups=*/1);
  return with_backward(output.squeeze(1), [input, weight, padding, trains_weight = run.trains(0),
                                           bias = op.bias](const at::Tensor& gradient) {
    const auto [dx, dw, db] = at::convolution_backward(
        gradient.unsqueeze(1), input.unsqueeze(1), weight, at::IntArrayRef{1}, {1}, padding, {1},
        /*transposed=*/false, {0}, /*groups=*/1, {true, trains_weight, bias});
    Gradients gradients{{dx.squeeze(1)}, {dw}};
    if (bias) gradients.parameters.push_back(db);
    return gradients;
  });
}

}  // namespace mpi4dl
