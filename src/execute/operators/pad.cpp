#include <ATen/ATen.h>

#include "execute/operation.hpp"
#include "execute/padding.hpp"

namespace mpi4dl {
namespace {

PadAxis along(const Pad& op, const TileRun& run, int axis) {
  return op.along(axis, run.graph.node(run.node().inputs[0]).shape.space[axis]);
}

/// Returns what lies around a tile's input; where it has none, all of the outputs do.
Padding constant_frame(const Pad& op, const TileRun& run) {
  Padding frame;
  for (int axis = 0; axis < run.output.axes() - 2; ++axis) {
    const int64_t before = along(op, run, axis).before;
    const Interval &rows = run.output[axis + 2], &patch = run.inputs[0].box[axis + 2];
    const int64_t begin = patch.empty() ? rows.end - before : patch.begin;
    frame.before.push_back(begin - (rows.begin - before));
    frame.after.push_back(rows.length() - patch.length() - frame.before.back());
  }
  return frame;
}

TileResult run_constant(const Pad& op, const TileRun& run) {
  const Padding frame = constant_frame(op, run);
  return with_backward(
      pad(run.inputs[0].data, frame, op.value),
      [frame](const at::Tensor& gradient) { return Gradients{{unpad(gradient, frame)}, {}}; });
}

/// Mirror is an axis on which a tile reads rows twice, or in another order.
struct Mirror {
  int64_t axis, length;
  at::Tensor rows;  ///< of the patch, that the outputs are
};

std::vector<Mirror> find_mirrors(const Pad& op, const TileRun& run) {
  std::vector<Mirror> mirrors;
  for (int axis = 0; axis < run.output.axes() - 2; ++axis) {
    const PadAxis padded = along(op, run, axis);
    const Interval& patch = run.inputs[0].box[axis + 2];
    std::vector<int64_t> rows;
    for (int64_t output = run.output[axis + 2].begin; output < run.output[axis + 2].end; ++output)
      rows.push_back(padded.source(output) - patch.begin);
    // A patch has no more rows than are read, so as many are read in order.
    const bool moves = rows.front() != 0 || rows.back() != patch.length() - 1 ||
                       std::ssize(rows) != patch.length();
    if (moves)
      mirrors.push_back(
          {axis + 1, patch.length(), run.backend().from_host(at::tensor(rows, at::kLong))});
  }
  return mirrors;
}

/// Copies rows; channels are last, so that a row is one piece of memory.
at::Tensor mirrored(const std::vector<Mirror>& mirrors, const at::Tensor& x) {
  at::Tensor values = x.movedim(1, -1);
  for (const Mirror& mirror : mirrors) values = values.index_select(mirror.axis, mirror.rows);
  return values.movedim(-1, 1);
}

/// Adds rows to where they came from.
at::Tensor unmirrored(const std::vector<Mirror>& mirrors, const at::Tensor& gradient) {
  at::Tensor values = gradient.movedim(1, -1);
  for (size_t i = mirrors.size(); i-- > 0;) {
    std::vector<int64_t> shape = values.sizes().vec();
    shape[mirrors[i].axis] = mirrors[i].length;
    values =
        at::zeros(shape, values.options()).index_add_(mirrors[i].axis, mirrors[i].rows, values);
  }
  return values.movedim(-1, 1);
}

}  // namespace

template <>
TileResult run_tile(const Pad& op, const TileRun& run) {
  if (op.mode == PadMode::constant) return run_constant(op, run);
  const std::vector<Mirror> mirrors = find_mirrors(op, run);
  return with_backward(mirrored(mirrors, run.inputs[0].data),
                       [mirrors](const at::Tensor& gradient) {
                         return Gradients{{unmirrored(mirrors, gradient)}, {}};
                       });
}

}  // namespace mpi4dl
