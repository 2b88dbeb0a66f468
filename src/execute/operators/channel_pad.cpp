#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const ChannelPad& op, const TileRun& run) {
  const at::Tensor& x = run.inputs[0].data;
  at::Tensor output =
      at::zeros(run.output.shape(), x.options().memory_format(memory_format(run.output)));
  output.narrow(1, op.before, x.size(1)).copy_(x);
  return with_backward(output, [op, channels = x.size(1)](const at::Tensor& gradient) {
    return Gradients{{gradient.narrow(1, op.before, channels)}, {}};
  });
}

}  // namespace mpi4dl
