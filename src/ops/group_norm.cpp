#include <ATen/ATen.h>

#include "ops/moments.hpp"
#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

/// As batch norm, but for each image and group of channels: statistics cover the owned pixels of
/// the ranks that share these images, and backward corrects owned pixels only.
class GroupNormTape : public Tape {
 public:
  GroupNormTape(const GroupNorm& op, const TileRun& run)
      : ranks_(run.node().shape.spatial() ? run.context.tiles : nullptr),
        groups_(op.groups),
        input_(run.inputs[0]),
        owned_(run.owned),
        weight_(run.parameters[0]) {
    const at::Tensor owned = grouped(input_.view(owned_));
    const Statistics statistics =
        merged_statistics(owned.flatten(2).flatten(0, 1), owned.size(0) * groups_, ranks_);
    count_ = per_group(statistics.count);
    mean_ = per_group(statistics.mean);
    inverse_deviation_ = per_group((statistics.variance + op.eps).rsqrt());
  }

  at::Tensor forward(const at::Tensor& bias) const {
    return ungrouped(normalised()).mul(per_channel(weight_)).add(per_channel(bias));
  }

  Gradients backward(const at::Tensor& gradient) override {
    const at::Tensor xhat = normalised();
    const at::Tensor dxhat = grouped(gradient * per_channel(weight_));
    at::Tensor sums = at::stack({sum_groups(dxhat), sum_groups(dxhat * xhat)}).to(at::kDouble);
    if (ranks_ != nullptr) ranks_->all_reduce(sums);
    const auto type = dxhat.scalar_type();
    const at::Tensor correction =
        ((sums[0] / count_).to(type) + xhat * (sums[1] / count_).to(type));
    const at::Tensor scale = inverse_deviation_.to(type);
    Patch dx{input_.box, ungrouped(dxhat * scale).contiguous()};
    const Patch shared{input_.box, ungrouped(correction * scale)};
    dx.view(owned_).sub_(shared.view(owned_));
    const at::Tensor product = gradient * ungrouped(xhat);
    return {{dx.data}, {sum_channels(product), sum_channels(gradient)}};
  }

 private:
  at::Tensor grouped(const at::Tensor& x) const { return x.unflatten(1, {groups_, -1}); }
  static at::Tensor ungrouped(const at::Tensor& x) { return x.flatten(1, 2); }
  at::Tensor normalised() const {
    const at::Tensor x = grouped(input_.data);
    return (x - mean_.to(x.scalar_type())) * inverse_deviation_.to(x.scalar_type());
  }
  at::Tensor per_group(const at::Tensor& values) const {
    std::vector<int64_t> shape(input_.box.axes() + 1, 1);
    shape[0] = input_.data.size(0);
    shape[1] = groups_;
    return values.view(shape);
  }
  at::Tensor per_channel(const at::Tensor& values) const {
    std::vector<int64_t> shape(input_.box.axes(), 1);
    shape[1] = -1;
    return values.view(shape);
  }
  static at::Tensor sum_groups(const at::Tensor& x) {
    std::vector<int64_t> dims;
    for (int64_t axis = 2; axis < x.dim(); ++axis) dims.push_back(axis);
    return x.sum(dims, /*keepdim=*/true);
  }
  static at::Tensor sum_channels(const at::Tensor& x) {
    return x.transpose(0, 1).flatten(1).sum(1);
  }

  const Communicator* ranks_;
  int64_t groups_;
  Patch input_;
  Box owned_;
  at::Tensor weight_;
  at::Tensor count_, mean_, inverse_deviation_;  // float64, per image and group
};

}  // namespace

TileResult run_group_norm(const GroupNorm& op, const TileRun& run) {
  if (run.output.empty()) return {run.inputs[0].data, nullptr};  // all of it is on another rank
  auto tape = std::make_unique<GroupNormTape>(op, run);
  at::Tensor output = tape->forward(run.parameters[1]);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
