#include <ATen/ATen.h>

#include "comm/collectives.hpp"
#include "execute/channels.hpp"
#include "execute/moments.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Normalises as batch norm does, but each image and group of channels by itself: statistics cover
/// the owned pixels of the ranks that share these images, and backward corrects owned pixels only.
/// Who owns all of a map has it alone.
class GroupNormTape : public Tape {
 public:
  GroupNormTape(const GroupNorm& op, const TileRun& run)
      : ranks_(owns_all_pixels(run) ? nullptr : run.context.tiles),
        groups_(op.groups_of(run.node().shape.channels)),
        input_(run.inputs[0]),
        owned_(run.owned),
        weight_(op.affine ? run.parameters[0] : at::Tensor()) {
    const at::Tensor owned = grouped(input_.view(owned_));
    const Statistics statistics =
        merged_statistics(owned.flatten(2).flatten(0, 1), owned.size(0) * groups_, ranks_);
    count_ = per_group(statistics.count);
    mean_ = per_group(statistics.mean);
    inverse_deviation_ = per_group((statistics.variance + op.eps).rsqrt());
  }

  at::Tensor forward(const at::Tensor& bias) const {
    const at::Tensor xhat = ungrouped(normalised());
    return weight_.defined() ? weighted(xhat).add(per_channel(bias, xhat.dim())) : xhat;
  }

  Gradients backward(const at::Tensor& gradient) override {
    const at::Tensor xhat = normalised();
    const at::Tensor dxhat = grouped(weighted(gradient));
    at::Tensor sums = at::stack({sum_groups(dxhat), sum_groups(dxhat * xhat)}).to(at::kDouble);
    if (ranks_ != nullptr) all_reduce(sums, *ranks_);
    const auto type = dxhat.scalar_type();
    const at::Tensor correction =
        ((sums[0] / count_).to(type) + xhat * (sums[1] / count_).to(type));
    const at::Tensor scale = inverse_deviation_.to(type);
    Patch dx{input_.box, ungrouped(dxhat * scale).contiguous()};
    const Patch shared{input_.box, ungrouped(correction * scale)};
    dx.view(owned_).sub_(shared.view(owned_));
    if (!weight_.defined()) return {{dx.data}, {}};
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
  at::Tensor weighted(const at::Tensor& x) const {
    return weight_.defined() ? x * per_channel(weight_, x.dim()) : x;
  }
  static bool owns_all_pixels(const TileRun& run) {
    int64_t pixels = 1;
    for (int axis = 2; axis < run.owned.axes(); ++axis) pixels *= run.owned[axis].length();
    return pixels == positions(run.node().shape.space);
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

template <>
TileResult run_tile(const GroupNorm& op, const TileRun& run) {
  if (run.output.empty()) return {run.inputs[0].data, nullptr};  // all of it is on another rank
  auto tape = std::make_unique<GroupNormTape>(op, run);
  at::Tensor output = tape->forward(op.affine ? run.parameters[1] : at::Tensor());
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
