#include <ATen/ATen.h>

#include "execute/autograd_tape.hpp"

namespace mpi4dl {
namespace {

/// Cuts a transposed convolution's result, which begins at `begin`, to the outputs asked for; where
/// no input reaches, zeros.
at::Tensor cut(const at::Tensor& values, int axis, int64_t begin, const Interval& outputs) {
  const int64_t end = begin + values.size(axis);
  std::vector<int64_t> widths(2 * (values.dim() - axis), 0);
  widths[widths.size() - 2] = begin - outputs.begin;  // negative widths cut
  widths[widths.size() - 1] = outputs.end - end;
  return at::constant_pad_nd(values, widths, 0);
}

}  // namespace

template <>
TileResult run_tile(const TransposedConvolution& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const auto axes = static_cast<size_t>(input.box.axes()) - 2;
  const Extents stride = option_of_all(op.stride, axes, 1),
                padding = option_of_all(op.padding, axes, 0);
  const Extents dilation = option_of_all(op.dilation, axes, 1), zero(axes, 0);
  const auto function = [&](const std::vector<at::Tensor>& leaves) {
    at::Tensor values;
    if (input.box.empty()) {  // no input reaches these outputs
      values = at::zeros(run.output.shape(), input.data.options()) +
               (leaves[0].sum() + leaves[1].sum()) * 0;
    } else {
      values = at::convolution(leaves[0], leaves[1], {}, stride, zero, dilation,
                               /*transposed=*/true, zero, op.groups);
      for (int axis = 2; axis < run.output.axes(); ++axis)
        values = cut(values, axis, input.box[axis].begin * stride[axis - 2] - padding[axis - 2],
                     run.output[axis]);
    }
    if (!op.bias) return values;
    std::vector<int64_t> shape(values.dim(), 1);
    shape[1] = -1;
    return values + leaves[2].view(shape);
  };
  return run_recorded(run, function);
}

}  // namespace mpi4dl
