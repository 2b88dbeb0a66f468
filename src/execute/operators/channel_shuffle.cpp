#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

at::Tensor shuffle_channels(const at::Tensor& x, int64_t groups) {
  const at::Tensor last = x.movedim(1, -1);
  const int64_t channels = x.size(1);
  return last.unflatten(-1, {groups, channels / groups})
      .transpose(-1, -2)
      .contiguous()
      .flatten(-2)
      .movedim(-1, 1);
}

}  // namespace

template <>
TileResult run_tile(const ChannelShuffle& op, const TileRun& run) {
  const int64_t back = run.output[1].length() / op.groups;
  return with_backward(shuffle_channels(run.inputs[0].data, op.groups),
                       [back](const at::Tensor& gradient) {
                         return Gradients{{shuffle_channels(gradient, back)}, {}};
                       });
}

}  // namespace mpi4dl
