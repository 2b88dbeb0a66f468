#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const ChannelSlice& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const int64_t length = op.end - op.begin;
  const auto format = memory_format(input.box);
  return with_backward(input.data.narrow(1, op.begin, length).contiguous(format),
                       [op, length, format, shape = input.data.sizes().vec(),
                        options = input.data.options()](const at::Tensor& gradient) {
                         at::Tensor all = at::empty(shape, options.memory_format(format)).zero_();
                         all.narrow(1, op.begin, length).copy_(gradient);
                         return Gradients{{all}, {}};
                       });
}

}  // namespace mpi4dl
