#include <ATen/ATen.h>

#include "execute/operation.hpp"
#include "execute/padding.hpp"
#include "execute/pixel_squares.hpp"

namespace mpi4dl {
namespace {

/// Returns what the squares of a tile's input have beyond its outputs, which may begin or end in
/// the middle of a square.
Padding beyond_outputs(const PixelShuffle& op, const TileRun& run) {
  Padding frame;
  for (int axis = 2; axis < run.output.axes(); ++axis) {
    const Interval &patch = run.inputs[0].box[axis], &rows = run.output[axis];
    frame.before.push_back(rows.begin - patch.begin * op.factor);
    frame.after.push_back(patch.end * op.factor - rows.end);
  }
  return frame;
}

}  // namespace

template <>
TileResult run_tile(const PixelShuffle& op, const TileRun& run) {
  const Padding frame = beyond_outputs(op, run);
  return with_backward(unpad(spread_channels(run.inputs[0].data, op.factor), frame),
                       [op, frame](const at::Tensor& gradient) {
                         return Gradients{{gather_squares(pad(gradient, frame, 0), op.factor)}, {}};
                       });
}

}  // namespace mpi4dl
