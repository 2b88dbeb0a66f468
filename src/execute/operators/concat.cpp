#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Concat& /*op*/, const TileRun& run) {
  std::vector<at::Tensor> parts;
  std::vector<int64_t> channels;
  for (const Patch& input : run.inputs) {
    parts.push_back(input.data);
    channels.push_back(input.data.size(1));
  }
  return with_backward(at::cat(parts, 1), [channels](const at::Tensor& gradient) {
    return Gradients{gradient.split_with_sizes(channels, 1), {}};
  });
}

}  // namespace mpi4dl
