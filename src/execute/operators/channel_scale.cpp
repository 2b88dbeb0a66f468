#include <ATen/ATen.h>

#include <utility>

#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// ChannelScaleTape is a batch norm's map whose mean is 0 and whose variance is 1, whatever the
/// pixels are: so the sums of dy * xhat are those of dy * x.
class ChannelScaleTape : public Tape {
 public:
  ChannelScaleTape(const ChannelScale& op, const TileRun& run)
      : backend_(run.backend()),
        input_(run.inputs[0]),
        parameters_(run.parameters.size()),
        shared_(op.shared),
        trained_(run.trains(0) || (op.bias && run.trains(1))) {
    const int64_t channels = run.node().shape.channels;
    const at::Tensor zeros = at::zeros({channels}, backend_.options(at::kDouble));
    const auto of_all = [&](const at::Tensor& values) {
      return op.shared ? values.expand({channels}).contiguous() : values;
    };
    map_ = backend_.channel_map({zeros, at::ones_like(zeros)}, of_all(run.parameters[0]),
                                op.bias ? of_all(run.parameters[1]) : zeros, /*eps=*/0);
  }

  void forward(const at::Tensor& output) const {
    backend_.normalise(input_.data, map_, {}, output);
  }

  Gradients backward(const at::Tensor& gradient) override {
    Gradients result;
    if (trained_) {
      result.parameters = backend_.rows(backend_.gradient_sums(gradient, input_.data, map_));
      std::swap(result.parameters[0], result.parameters[1]);  // the weight comes before the bias
      result.parameters.resize(parameters_);
      if (shared_)
        for (at::Tensor& sums : result.parameters) sums = sums.sum().view({1});
    }
    const bool in_place = sole_owner(gradient) && gradient.is_non_overlapping_and_dense();
    const at::Tensor dx =
        in_place ? gradient : backend_.empty(input_.box, input_.data.scalar_type()).data;
    backend_.normalise_backward(gradient, input_.data, map_, {}, dx);
    result.inputs = {dx};
    return result;
  }

 private:
  const Backend& backend_;
  Patch input_;
  size_t parameters_;
  bool shared_;
  bool trained_;
  ChannelMap map_;
};

}  // namespace

template <>
TileResult run_tile(const ChannelScale& op, const TileRun& run) {
  auto tape = std::make_unique<ChannelScaleTape>(op, run);
  at::Tensor output = run.target.defined()
                          ? run.target
                          : run.backend().empty(run.output, run.inputs[0].data.scalar_type()).data;
  tape->forward(output);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
