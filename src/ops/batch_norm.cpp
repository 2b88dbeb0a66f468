#include <ATen/ATen.h>

#include "ops/kernels/normalisation.hpp"
#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

at::Tensor empty_tile(const Box& box, c10::ScalarType type) {
  return at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)));
}

/// Statistics cover the pixels *owned* by all ranks and normalise the whole box, margins included.
/// Backward therefore sums over all *computed* pixels, and corrects owned ones only:
///
///     dx = gamma/sigma * (dy - [owned] (sum(dy) + xhat * sum(dy * xhat)) / count)
///
/// With a ReLU behind it, dy counts where y was positive; y itself is not kept.
class BatchNormTape : public Tape {
 public:
  BatchNormTape(const BatchNorm& op, const TileRun& run)
      : ranks_(run.context.statistics),
        training_(run.context.training),
        channels_(run.node().shape.channels),
        input_(run.inputs[0]),
        owned_(run.owned) {
    if (training_) {
      measure();
    } else {
      map_.mean = run.parameters[2].to(at::kDouble);
      variance_ = run.parameters[3].to(at::kDouble);
    }
    map_.inverse_deviation = (variance_ + op.eps).rsqrt();
    map_.scale = run.parameters[0].to(at::kDouble) * map_.inverse_deviation;
    map_.bias = run.parameters[1].to(at::kDouble);
    map_.relu = run.relu;
  }

  /// For the running statistics: mean and unbiased variance.
  std::vector<at::Tensor> measured() const {
    if (!training_) return {};
    return {map_.mean, variance_ * (count_ / (count_ - 1).clamp_min(1))};
  }

  /// Writes the output; as often as one likes.
  std::function<void()> maker(const at::Tensor& output) const {
    return [input = input_.data, map = map_, output] { normalise(input, map, output); };
  }

  Gradients backward(const at::Tensor& gradient) override {
    at::Tensor sums = input_.box.empty() ? at::zeros({2, channels_}, at::kDouble)
                                         : gradient_sums(gradient, input_.data, map_);
    const at::Tensor own = sums.clone();
    if (training_ && ranks_ != nullptr) ranks_->all_reduce(sums);
    if (input_.box.empty()) return {{at::Tensor()}, {own[1], own[0]}};
    // The convolution behind this one wants a gradient without gaps.
    const bool in_place = sole_owner(gradient) && gradient.is_non_overlapping_and_dense();
    const Patch dy{input_.box, gradient};
    const Patch dx{input_.box,
                   in_place ? gradient : empty_tile(input_.box, input_.data.scalar_type())};
    const auto differentiate = [&](const Box& part, const at::Tensor& means) {
      normalise_backward(dy.view(part), input_.view(part), map_, means, dx.view(part));
    };
    if (!training_ || owned_.empty()) {
      differentiate(input_.box, {});
    } else {
      differentiate(owned_, sums / count_);
      for (const Box& margin : difference(input_.box, owned_)) differentiate(margin, {});
    }
    return {{dx.data}, {own[1], own[0]}};
  }

 private:
  void measure() {
    at::Tensor moments = owned_.empty() ? at::zeros({channels_, 3}, at::kDouble)
                                        : channel_moments(input_.view(owned_));
    if (ranks_ != nullptr) ranks_->all_reduce_moments(moments);
    count_ = moments.select(1, 0);
    map_.mean = moments.select(1, 1);
    variance_ = moments.select(1, 2) / count_;
  }

  const Communicator* ranks_;
  bool training_;
  int64_t channels_;
  Patch input_;
  Box owned_;
  ChannelMap map_;
  at::Tensor count_, variance_;  // float64, per channel
};

}  // namespace

TileResult run_batch_norm(const BatchNorm& op, const TileRun& run) {
  auto tape = std::make_unique<BatchNormTape>(op, run);
  std::vector<at::Tensor> measured = tape->measured();
  const Patch& input = run.inputs[0];
  if (input.box.empty()) return {input.data, std::move(tape), std::move(measured)};
  at::Tensor output =
      run.target.defined() ? run.target : empty_tile(run.output, input.data.scalar_type());
  auto remake = tape->maker(output);
  remake();
  return {std::move(output), std::move(tape), std::move(measured), std::move(remake)};
}

}  // namespace mpi4dl
