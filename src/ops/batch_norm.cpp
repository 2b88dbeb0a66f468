#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "ops/kernels/normalisation.hpp"
#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

at::Tensor empty_tile(const Box& box, c10::ScalarType type) {
  return at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)));
}

/// A number per channel, without the views and copies of libtorch.
at::Tensor vector_of(const double* numbers, int64_t channels) {
  at::Tensor vector = at::empty({channels}, at::kDouble);
  std::copy_n(numbers, channels, vector.data_ptr<double>());
  return vector;
}

/// Statistics cover the pixels *owned* by all ranks and normalise the whole box, margins included.
/// Backward therefore sums over all *computed* pixels, and corrects owned ones only:
///
///     dx = gamma/sigma * (dy - [owned] (sum(dy) + xhat * sum(dy * xhat)) / count)
///
/// With a ReLU behind it, dy counts where y was positive; y itself is kept only where something was
/// added to it before.
class BatchNormTape : public Tape {
 public:
  BatchNormTape(const BatchNorm& op, const TileRun& run)
      : ranks_(run.context.statistics),
        training_(run.context.training),
        channels_(run.node().shape.channels),
        input_(run.inputs[0]),
        sums_(run.addend.data.defined()),
        owned_(run.owned) {
    Numbers variance;
    if (training_) {
      variance = measure();
    } else {
      map_.mean = numbers_of(run.parameters[2]);
      variance = numbers_of(run.parameters[3]);
    }
    map_.scale = numbers_of(run.parameters[0]);
    map_.bias = numbers_of(run.parameters[1]);
    map_.relu = run.relu;
    map_.inverse_deviation.resize(channels_);
    for (int64_t channel = 0; channel < channels_; ++channel) {
      map_.inverse_deviation[channel] = 1 / std::sqrt(variance[channel] + op.eps);
      map_.scale[channel] *= map_.inverse_deviation[channel];
    }
  }

  /// For the running statistics: mean and unbiased variance.
  const std::vector<at::Tensor>& measured() const { return measured_; }

  /// Returns a function that writes the output once more, unless something was added to it.
  std::function<void()> forward(const at::Tensor& addend, const at::Tensor& output) {
    normalise(input_.data, map_, addend, output);
    if (!sums_)
      return [input = input_.data, map = map_, output] { normalise(input, map, {}, output); };
    if (map_.relu) output_ = output;
    map_.relu = false;  // who cannot see the sum cannot say where it was cut off
    return {};
  }

  Gradients backward(const at::Tensor& gradient) override {
    if (!sums_) return differentiate(gradient);
    const at::Tensor of_sum =
        output_.defined() ? at::threshold_backward(gradient, output_, 0) : gradient;
    Gradients result = differentiate(of_sum);
    result.inputs.push_back(of_sum);
    return result;
  }

 private:
  Gradients differentiate(const at::Tensor& gradient) {
    at::Tensor sums = input_.box.empty() ? at::zeros({2, channels_}, at::kDouble)
                                         : gradient_sums(gradient, input_.data, map_);
    const double* sum = sums.data_ptr<double>();
    std::vector<at::Tensor> own{vector_of(sum + channels_, channels_),  // of the weight
                                vector_of(sum, channels_)};             // of the bias
    if (training_ && ranks_ != nullptr) ranks_->all_reduce(sums);
    if (input_.box.empty()) return {{at::Tensor()}, std::move(own)};
    // The convolution behind this one wants a gradient without gaps.
    const bool in_place = !sums_ && sole_owner(gradient) && gradient.is_non_overlapping_and_dense();
    const Patch dy{input_.box, gradient};
    const Patch dx{input_.box,
                   in_place ? gradient : empty_tile(input_.box, input_.data.scalar_type())};
    const auto write = [&](const Box& part, const GradientMeans* means) {
      normalise_backward(dy.view(part), input_.view(part), map_, means, dx.view(part));
    };
    if (!training_ || owned_.empty()) {
      write(input_.box, nullptr);
    } else {
      const GradientMeans means = means_of(sums);
      write(owned_, &means);
      for (const Box& margin : difference(input_.box, owned_)) write(margin, nullptr);
    }
    return {{dx.data}, std::move(own)};
  }

  /// Returns the variance.
  Numbers measure() {
    at::Tensor moments = owned_.empty() ? at::zeros({channels_, 3}, at::kDouble)
                                        : channel_moments(input_.view(owned_));
    if (ranks_ != nullptr) ranks_->all_reduce_moments(moments);
    const double* moment = moments.data_ptr<double>();
    Numbers variance(channels_), unbiased(channels_);
    map_.mean.resize(channels_);
    for (int64_t channel = 0; channel < channels_; ++channel, moment += 3) {
      count_ = moment[0];
      map_.mean[channel] = moment[1];
      variance[channel] = moment[2] / count_;
      unbiased[channel] = moment[2] / std::max(count_ - 1, 1.0);
    }
    measured_ = {vector_of(map_.mean.data(), channels_), vector_of(unbiased.data(), channels_)};
    return variance;
  }

  GradientMeans means_of(const at::Tensor& sums) const {
    const double* sum = sums.data_ptr<double>();
    GradientMeans means{Numbers(sum, sum + channels_),
                        Numbers(sum + channels_, sum + 2 * channels_)};
    for (Numbers* numbers : {&means.gradient, &means.with_xhat})
      for (double& number : *numbers) number /= count_;
    return means;
  }

  const Communicator* ranks_;
  bool training_;
  int64_t channels_;
  Patch input_;
  bool sums_;          // something was added
  at::Tensor output_;  // of a ReLU behind the sum
  Box owned_;
  ChannelMap map_;
  double count_ = 0;  // pixels of a channel
  std::vector<at::Tensor> measured_;
};

}  // namespace

TileResult run_batch_norm(const BatchNorm& op, const TileRun& run) {
  auto tape = std::make_unique<BatchNormTape>(op, run);
  std::vector<at::Tensor> measured = tape->measured();
  const Patch& input = run.inputs[0];
  if (input.box.empty()) return {input.data, std::move(tape), std::move(measured)};
  at::Tensor output =
      run.target.defined() ? run.target : empty_tile(run.output, input.data.scalar_type());
  auto remake = tape->forward(run.addend.data, output);
  return {std::move(output), std::move(tape), std::move(measured), std::move(remake)};
}

}  // namespace mpi4dl
