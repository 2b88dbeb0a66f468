#include <ATen/ATen.h>

#include "execute/channels.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Broadcast& /*op*/, const TileRun& run) {
  const at::Tensor output = at_every_pixel(run.inputs[0].data, run.output.axes())
                                .expand(run.output.shape())
                                .contiguous(memory_format(run.output));
  return with_backward(output, [](const at::Tensor& gradient) {
    return Gradients{{sum_over_pixels(gradient)}, {}};
  });
}

}  // namespace mpi4dl
