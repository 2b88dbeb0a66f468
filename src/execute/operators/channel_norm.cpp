#include <ATen/ATen.h>

#include <array>

#include "execute/operation.hpp"

namespace mpi4dl {

/// Leaves it to libtorch's layer norm: channels are the last axis in memory.
template <>
TileResult run_tile(const ChannelNorm& op, const TileRun& run) {
  const at::Tensor input = run.inputs[0].data.movedim(1, -1);
  const at::Tensor weight = op.affine ? run.parameters[0] : at::Tensor();
  const at::Tensor bias = op.affine ? run.parameters[1] : at::Tensor();
  const std::array channels{input.size(-1)};
  const std::array wanted{true, op.affine && run.trains(0), op.affine && run.trains(1)};
  const auto [output, pixel_mean, pixel_scale] =
      at::native_layer_norm(input, channels, weight, bias, op.eps);
  const at::Tensor mean = pixel_mean, inverse_deviation = pixel_scale;
  return with_backward(output.movedim(-1, 1), [=](const at::Tensor& gradient) {
    const auto [dx, dweight, dbias] = at::native_layer_norm_backward(
        gradient.movedim(1, -1), input, channels, mean, inverse_deviation, weight, bias, wanted);
    return Gradients{{dx.movedim(-1, 1)}, {dweight, dbias}};
  });
}

}  // namespace mpi4dl
