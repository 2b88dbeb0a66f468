#include <ATen/ATen.h>

#include "ops/moments.hpp"
#include "ops/operators.hpp"
#include "ops/precision.hpp"

namespace mpi4dl {
namespace {

/// A number per channel, shaped to broadcast over an image.
at::Tensor per_channel(const at::Tensor& values, int axes) {
  std::vector<int64_t> shape(axes, 1);
  shape[1] = -1;
  return values.view(shape);
}

std::vector<int64_t> all_but_channels(int axes) {
  std::vector<int64_t> dims{0};
  for (int axis = 2; axis < axes; ++axis) dims.push_back(axis);
  return dims;
}

/// Statistics cover the pixels *owned* by all ranks and normalise the whole box, margins included.
/// Backward therefore sums over all *computed* pixels, and corrects owned ones only:
///
///     dx = gamma/sigma * (dy - [owned] (sum(dy) + xhat * sum(dy * xhat)) / count)
class BatchNormTape : public Tape {
 public:
  BatchNormTape(const BatchNorm& op, const TileRun& run)
      : ranks_(run.context.statistics),
        training_(run.context.training),
        channels_(run.node().shape.channels),
        input_(run.inputs[0]),
        owned_(run.owned),
        type_(wide_type(run.inputs[0].data.scalar_type())),
        weight_(run.parameters[0]) {
    if (training_) {
      measure();
    } else {
      mean_ = run.parameters[2].to(at::kDouble);
      variance_ = run.parameters[3].to(at::kDouble);
    }
    inverse_deviation_ = (variance_ + op.eps).rsqrt();
  }

  /// For the running statistics: mean and unbiased variance.
  std::vector<at::Tensor> measured() const {
    if (!training_) return {};
    return {mean_, variance_ * (count_ / (count_ - 1).clamp_min(1))};
  }

  at::Tensor forward(const at::Tensor& bias) const {
    if (input_.box.empty()) return input_.data;
    const at::Tensor scale = weight_.to(at::kDouble) * inverse_deviation_;
    return (wide_input() - broadcast(mean_))
        .mul_(broadcast(scale))
        .add_(broadcast(bias))
        .to(input_.data.scalar_type());
  }

  Gradients backward(const at::Tensor& gradient) override {
    at::Tensor sums = at::zeros({2, channels_}, at::kDouble);
    at::Tensor dy, normalised;
    if (!input_.box.empty()) {
      dy = gradient.to(type_);
      normalised = (wide_input() - broadcast(mean_)).mul_(broadcast(inverse_deviation_));
      const auto dims = all_but_channels(input_.box.axes());
      sums[0].copy_(dy.sum(dims));
      sums[1].copy_((dy * normalised).sum(dims));
    }
    const at::Tensor own = sums.to(weight_.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    if (training_ && ranks_ != nullptr) ranks_->all_reduce(sums);
    if (input_.box.empty()) return {{at::Tensor()}, {own[1], own[0]}};
    const at::Tensor scale = broadcast(weight_.to(at::kDouble) * inverse_deviation_);
    Patch dx{input_.box, dy * scale};
    if (training_ && !owned_.empty()) {
      const Patch xhat{input_.box, normalised};
      const at::Tensor mean_dy = broadcast(sums[0] / count_);
      const at::Tensor mean_dy_xhat = broadcast(sums[1] / count_);
      dx.view(owned_).sub_((xhat.view(owned_) * mean_dy_xhat).add_(mean_dy).mul_(scale));
    }
    return {{dx.data.to(input_.data.scalar_type())}, {own[1], own[0]}};
  }

 private:
  void measure() {
    const at::Tensor owned = owned_.empty() ? at::empty({0}, input_.data.options())
                                            : input_.view(owned_).transpose(0, 1).flatten(1);
    const Statistics statistics = merged_statistics(owned, channels_, ranks_);
    count_ = statistics.count;
    mean_ = statistics.mean;
    variance_ = statistics.variance;
  }

  at::Tensor broadcast(const at::Tensor& values) const {
    return per_channel(values.to(type_), input_.box.axes());
  }
  at::Tensor wide_input() const { return input_.data.to(type_); }

  const Communicator* ranks_;
  bool training_;
  int64_t channels_;
  Patch input_;
  Box owned_;
  c10::ScalarType type_;
  at::Tensor weight_;
  at::Tensor count_, mean_, variance_, inverse_deviation_;  // float64, per channel
};

}  // namespace

TileResult run_batch_norm(const BatchNorm& op, const TileRun& run) {
  auto tape = std::make_unique<BatchNormTape>(op, run);
  at::Tensor output = tape->forward(run.parameters[1]);
  std::vector<at::Tensor> measured = tape->measured();
  return {std::move(output), std::move(tape), std::move(measured)};
}

}  // namespace mpi4dl
