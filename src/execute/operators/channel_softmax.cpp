#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

/// Moves channels to the end, where they are in memory: libtorch copies the values otherwise.
template <>
TileResult run_tile(const ChannelSoftmax& /*op*/, const TileRun& run) {
  const at::Tensor output = at::softmax(run.inputs[0].data.movedim(1, -1), -1);
  return with_backward(output.movedim(-1, 1), [output](const at::Tensor& gradient) {
    const at::Tensor dx =
        at::_softmax_backward_data(gradient.movedim(1, -1), output, -1, output.scalar_type());
    return Gradients{{dx.movedim(-1, 1)}, {}};
  });
}

}  // namespace mpi4dl
