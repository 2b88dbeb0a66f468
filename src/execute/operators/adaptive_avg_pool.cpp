#include <ATen/ATen.h>

#include "backend/precision.hpp"
#include "exchange/redistribution.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// The mean over a window is one along each axis after the other, each a product with a matrix:
/// windows x pixels. Windows and pixels are global, so a tile's pixels may be part of a window, and
/// then its product is part of the mean.
class AdaptiveAvgPoolTape : public Tape {
 public:
  AdaptiveAvgPoolTape(const AdaptiveAvgPool& op, const TileRun& run)
      : pooling_(run.pooling),
        input_(run.inputs[0].box),
        means_(run.pooling != nullptr ? run.pooled_part : run.output),
        owned_(run.owned),
        options_(run.inputs[0].data.options()) {
    const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
    if (input_.empty()) return;
    for (int axis = 2; axis < input_.axes(); ++axis)
      windows_.push_back(windows_of(axis, op.size[axis - 2], space[axis - 2]));
  }

  at::Tensor forward(const at::Tensor& input) const {
    if (pooling_ == nullptr) return means_of(input);
    const Patch part = make_patch(pooling_->comm(), means_, type());
    if (!means_.empty()) part.data.copy_(means_of(input));
    const Patch whole = make_patch(pooling_->comm(), owned_, type());
    whole.data.zero_();
    pooling_->run_adjoint(part, whole);
    return whole.data;
  }

  Gradients backward(const at::Tensor& gradient) override {
    if (pooling_ == nullptr) return {{spread(gradient)}, {}};
    const Patch part = make_patch(pooling_->comm(), means_, type());
    pooling_->run({owned_, gradient}, part);
    return {{input_.empty() ? at::Tensor() : spread(part.data)}, {}};
  }

 private:
  c10::ScalarType type() const { return c10::typeMetaToScalarType(options_.dtype()); }

  /// Returns the share that each pixel has in each mean along one axis.
  at::Tensor windows_of(int axis, int64_t count, int64_t length) const {
    const auto numbers = [&](const Interval& range) {
      return at::arange(range.begin, range.end, options_.dtype(at::kLong));
    };
    const at::Tensor window = numbers(means_[axis]).unsqueeze(1), pixel = numbers(input_[axis]);
    const at::Tensor first = (window * length).div(count, "floor");
    const at::Tensor last = ((window + 1) * length + (count - 1)).div(count, "floor");
    const at::Tensor inside = pixel.ge(first).logical_and(pixel.lt(last));
    const auto wide = wide_type(type());
    return inside.to(wide).div_((last - first).to(wide));
  }

  at::Tensor means_of(const at::Tensor& input) const {
    at::Tensor values = input.to(wide_type(type()));
    for (int axis = 2; axis < input_.axes(); ++axis)
      values = values.movedim(axis, -1).matmul(windows_[axis - 2].t()).movedim(-1, axis);
    return values.to(type()).contiguous(memory_format(input_));
  }

  at::Tensor spread(const at::Tensor& gradient) const {
    at::Tensor values = gradient.to(wide_type(type()));
    for (int axis = input_.axes() - 1; axis >= 2; --axis)
      values = values.movedim(axis, -1).matmul(windows_[axis - 2]).movedim(-1, axis);
    return values.to(type()).contiguous(memory_format(input_));
  }

  const Redistribution* pooling_;
  Box input_, means_, owned_;
  at::TensorOptions options_;
  std::vector<at::Tensor> windows_;  // by spatial axis
};

}  // namespace

template <>
TileResult run_tile(const AdaptiveAvgPool& op, const TileRun& run) {
  auto tape = std::make_unique<AdaptiveAvgPoolTape>(op, run);
  at::Tensor output = tape->forward(run.inputs[0].data);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
