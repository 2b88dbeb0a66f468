#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const AvgPool& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const std::vector<Window> wins = windows(op, input.box.axes() - 2);
  const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
  PoolingTile tile{.axes = {}, .count_include_pad = op.count_include_pad};
  for (size_t axis = 0; axis < wins.size(); ++axis) {
    const int dim = static_cast<int>(axis) + 2;
    tile.axes.push_back({wins[axis], run.output[dim], input.box[dim], space[axis]});
  }
  const Backend& backend = run.backend();
  at::Tensor output = backend.average_pool(tile, input.data);
  return with_backward(
      std::move(output), [&backend, tile, shape = input.box.shape()](const at::Tensor& gradient) {
        return Gradients{{backend.average_pool_backward(tile, gradient, shape)}, {}};
      });
}

}  // namespace mpi4dl
