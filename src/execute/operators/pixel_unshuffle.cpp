#include <ATen/ATen.h>

#include "execute/operation.hpp"
#include "execute/pixel_squares.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const PixelUnshuffle& op, const TileRun& run) {
  return with_backward(gather_squares(run.inputs[0].data, op.factor),
                       [op](const at::Tensor& gradient) {
                         return Gradients{{spread_channels(gradient, op.factor)}, {}};
                       });
}

}  // namespace mpi4dl
