#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

/// What this thread's operators pass through, autograd included: a stage leaves it out.
c10::impl::LocalDispatchKeySet with_autograd() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

/// Operators that enlarge are rare and cheap: libtorch's autograd differentiates them.
class AutogradTape : public Tape {
 public:
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

  AutogradTape(const at::Tensor& input, const std::vector<at::Tensor>& parameters,
               const Function& function) {
    const c10::impl::ForceDispatchKeyGuard recorded(with_autograd());
    const at::AutoGradMode record(true);
    leaves_.push_back(input.detach().requires_grad_());
    for (const at::Tensor& parameter : parameters)
      leaves_.push_back(parameter.detach().requires_grad_());
    output_ = function(leaves_);
  }

  at::Tensor output() const { return output_.detach(); }

  Gradients backward(const at::Tensor& gradient) override {
    auto all = torch::autograd::grad({output_}, leaves_, {gradient});
    return {{all[0]}, {all.begin() + 1, all.end()}};
  }

 private:
  std::vector<at::Tensor> leaves_;
  at::Tensor output_;
};

TileResult result(std::unique_ptr<AutogradTape> tape) {
  at::Tensor output = tape->output();
  return {std::move(output), std::move(tape)};
}

/// Where one output row comes from: a mix of two input rows.
struct Source {
  at::Tensor first, second;  // rows of the patch
  at::Tensor share;          // of the second
};

Source sources(const Upsample& op, const Interval& outputs, const Interval& patch, int64_t length) {
  const int64_t count = outputs.length();
  Source source{at::empty({count}, at::kLong), at::empty({count}, at::kLong),
                at::zeros({count}, at::kDouble)};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t o = outputs.begin + i, nearest = o / op.factor;
    const double place =
        op.mode == Interpolation::nearest
            ? static_cast<double>(nearest)
            : std::max((static_cast<double>(o) + 0.5) / static_cast<double>(op.factor) - 0.5, 0.0);
    const auto below = static_cast<int64_t>(std::floor(place));
    source.first.data_ptr<int64_t>()[i] = below - patch.begin;
    source.second.data_ptr<int64_t>()[i] = op.mode == Interpolation::nearest
                                               ? below - patch.begin
                                               : std::min(below + 1, length - 1) - patch.begin;
    source.share.data_ptr<double>()[i] = place - static_cast<double>(below);
  }
  return source;
}

at::Tensor enlarge(const Upsample& op, const at::Tensor& input, int axis, const Interval& outputs,
                   const Interval& patch, int64_t length) {
  const Source source = sources(op, outputs, patch, length);
  at::Tensor first = input.index_select(axis, source.first);
  if (op.mode == Interpolation::nearest) return first;
  std::vector<int64_t> shape(input.dim(), 1);
  shape[axis] = -1;
  const at::Tensor share = source.share.to(input.scalar_type()).view(shape);
  return first * (1 - share) + input.index_select(axis, source.second) * share;
}

Extents or_default(const Extents& values, size_t axes, int64_t otherwise) {
  return values.empty() ? Extents(axes, otherwise) : values;
}

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

TileResult run_upsample(const Upsample& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
  const auto function = [&](const std::vector<at::Tensor>& leaves) {
    at::Tensor values = leaves[0];
    for (int axis = 2; axis < run.output.axes(); ++axis)
      values = enlarge(op, values, axis, run.output[axis], input.box[axis], space[axis - 2]);
    return values;
  };
  return result(std::make_unique<AutogradTape>(input.data, std::vector<at::Tensor>{}, function));
}

TileResult run_transposed_convolution(const TransposedConvolution& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const auto axes = static_cast<size_t>(input.box.axes()) - 2;
  const Extents stride = or_default(op.stride, axes, 1), padding = or_default(op.padding, axes, 0);
  const Extents dilation = or_default(op.dilation, axes, 1), zero(axes, 0);
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
  return result(std::make_unique<AutogradTape>(input.data, run.parameters, function));
}

}  // namespace mpi4dl
