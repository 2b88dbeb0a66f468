#include <ATen/ATen.h>

#include <utility>

#include "comm/collectives.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

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
      : backend_(run.backend()),
        ranks_(run.context.statistics),
        measures_(run.context.training && !op.frozen),
        affine_(op.affine),
        trains_(op.affine && (run.trains(0) || run.trains(1))),
        channels_(run.node().shape.channels),
        input_(run.inputs[0]),
        has_residual_(run.residual.data.defined()),
        owned_(run.owned) {
    const ChannelStatistics statistics =
        measures_ ? measure()
                  : ChannelStatistics{run.parameters.end()[-2], run.parameters.end()[-1]};
    const bool alone_with_none = ranks_ == nullptr && owned_.empty();
    if (measures_ && !alone_with_none) measured_ = {statistics.mean, statistics.unbiased};
    const auto number = [&](double value) {
      return at::full({channels_}, value, backend_.options(at::kDouble));
    };
    map_ = backend_.channel_map(statistics, affine_ ? run.parameters[0] : number(1),
                                affine_ ? run.parameters[1] : number(0), op.eps);
    map_.relu = run.relu;
  }

  /// Returns what running statistics move towards: mean and unbiased variance.
  const std::vector<at::Tensor>& measured() const { return measured_; }

  /// Returns a function that writes the output once more, unless something was added to it.
  std::function<void()> forward(const at::Tensor& residual, const at::Tensor& output) {
    backend_.normalise(input_.data, map_, residual, output);
    if (!has_residual_)
      return [&backend = backend_, input = input_.data, map = map_, output] {
        backend.normalise(input, map, {}, output);
      };
    if (map_.relu) output_ = output;
    map_.relu = false;  // who cannot see the sum cannot say where it was cut off
    return {};
  }

  Gradients backward(const at::Tensor& gradient) override {
    if (!has_residual_) return differentiate(gradient);
    const at::Tensor of_sum =
        output_.defined() ? at::threshold_backward(gradient, output_, 0) : gradient;
    Gradients result = differentiate(of_sum);
    result.inputs.push_back(of_sum);
    return result;
  }

 private:
  Gradients differentiate(const at::Tensor& gradient) {
    at::Tensor sums;
    std::vector<at::Tensor> own;
    if (measures_ || trains_)
      sums = input_.box.empty() ? at::zeros({2, channels_}, backend_.options(at::kDouble))
                                : backend_.gradient_sums(gradient, input_.data, map_);
    if (trains_) {
      own = backend_.rows(sums);
      std::swap(own[0], own[1]);  // the weight comes before the bias
    }
    if (measures_ && ranks_ != nullptr) all_reduce(sums, *ranks_);
    if (input_.box.empty()) return {{at::Tensor()}, std::move(own)};
    // The convolution behind this one wants a gradient without gaps.
    const bool in_place =
        !has_residual_ && sole_owner(gradient) && gradient.is_non_overlapping_and_dense();
    const Patch dy{input_.box, gradient};
    const Patch dx = in_place ? dy : backend_.empty(input_.box, input_.data.scalar_type());
    const auto write = [&](const Box& part, const at::Tensor& means) {
      backend_.normalise_backward(dy.view(part), input_.view(part), map_, means, dx.view(part));
    };
    if (!measures_ || owned_.empty()) {
      write(input_.box, {});
    } else {
      write(owned_, backend_.gradient_means(sums, moments_));
      for (const Box& margin : difference(input_.box, owned_)) write(margin, {});
    }
    return {{dx.data}, std::move(own)};
  }

  ChannelStatistics measure() {
    moments_ = owned_.empty() ? at::zeros({channels_, 3}, backend_.options(at::kDouble))
                              : backend_.channel_moments(input_.view(owned_));
    if (ranks_ != nullptr) all_reduce_moments(moments_, *ranks_);
    return backend_.statistics(moments_);
  }

  const Backend& backend_;
  const Communicator* ranks_;
  bool measures_;  // statistics, rather than taking the running ones
  bool affine_;
  bool trains_;  // its weight or its bias
  int64_t channels_;
  Patch input_;
  bool has_residual_;
  at::Tensor output_;  // of a ReLU behind the sum
  Box owned_;
  ChannelMap map_;
  at::Tensor moments_;  // of all ranks
  std::vector<at::Tensor> measured_;
};

}  // namespace

template <>
TileResult run_tile(const BatchNorm& op, const TileRun& run) {
  auto tape = std::make_unique<BatchNormTape>(op, run);
  std::vector<at::Tensor> measured = tape->measured();
  const Patch& input = run.inputs[0];
  if (input.box.empty()) return {input.data, std::move(tape), std::move(measured)};
  at::Tensor output = run.target.defined()
                          ? run.target
                          : run.backend().empty(run.output, input.data.scalar_type()).data;
  auto rematerialise = tape->forward(run.residual.data, output);
  return {std::move(output), std::move(tape), std::move(measured), std::move(rematerialise)};
}

}  // namespace mpi4dl
