#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>

#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Lists for each row of a result the rows that it is mixed from.
struct RowMixtures {
  struct Part {
    int64_t row = 0;
    double weight = 0;
  };
  std::vector<std::vector<Part>> rows;

  size_t taps() const {
    size_t most = 1;
    for (const auto& parts : rows) most = std::max(most, parts.size());
    return most;
  }
  /// Returns the adjoint, whose result has `length` rows. It reads where scatter-adding would
  /// write, so that sums have one order on any device.
  RowMixtures adjoint(int64_t length) const {
    RowMixtures result{std::vector<std::vector<Part>>(length)};
    for (size_t row = 0; row < rows.size(); ++row)
      for (const auto& [from, weight] : rows[row])
        result.rows[from].push_back({static_cast<int64_t>(row), weight});
    return result;
  }
};

/// Lists what a tile's outputs are mixed from, counted from where its patch begins.
RowMixtures mixtures_of(const Resampling& axis, const Interval& outputs, const Interval& patch,
                        Resampling::Precision precision) {
  RowMixtures result;
  for (int64_t output = outputs.begin; output < outputs.end; ++output) {
    const auto [inputs, weights] = axis.mixture(output, precision);
    std::vector<RowMixtures::Part> parts;
    for (int tap = 0; tap < axis.taps(); ++tap) {
      const int64_t row = inputs[tap] - patch.begin;
      if (!parts.empty() && parts.back().row == row) {  // at the edge
        parts.back().weight += weights[tap];
      } else {
        parts.push_back({row, weights[tap]});
      }
    }
    result.rows.push_back(std::move(parts));
  }
  return result;
}

/// Mixes rows by such lists, which it has where the values are.
struct RowMixer {
  int64_t axis;
  at::Tensor rows, weights;  // taps x rows; no weights where all are 1

  RowMixer(const RowMixtures& mixtures, int64_t axis, c10::ScalarType type, const Backend& backend)
      : axis(axis) {
    const auto taps = static_cast<int64_t>(mixtures.taps());
    const auto length = static_cast<int64_t>(mixtures.rows.size());
    std::vector<int64_t> indices;
    std::vector<double> shares;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (const auto& parts : mixtures.rows) {
        const bool there = tap < std::ssize(parts);
        indices.push_back(there ? parts[tap].row : parts.empty() ? 0 : parts[0].row);
        shares.push_back(there ? parts[tap].weight : 0);
      }
    rows = backend.from_host(at::tensor(indices, at::kLong).view({taps, length}));
    const auto is_one = [](double share) { return share == 1; };
    if (!std::ranges::all_of(shares, is_one))
      weights = backend.from_host(at::tensor(shares, at::kDouble).to(type).view({taps, length}));
  }

  /// Mixes rows of a tensor that has its channels last.
  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor sum;
    for (int64_t tap = 0; tap < rows.size(0); ++tap) {
      at::Tensor part = x.index_select(axis, rows[tap]);
      const at::Tensor weight = weights.defined() ? spread(weights[tap], x) : at::Tensor();
      if (!sum.defined()) {
        sum = weight.defined() ? part.mul_(weight) : part;
      } else {
        weight.defined() ? sum.addcmul_(part, weight) : sum.add_(part);
      }
    }
    return sum;
  }

 private:
  /// Shapes weights to broadcast. Those of the last axis are repeated for each channel: so libtorch
  /// multiplies whole rows rather than pixel by pixel.
  at::Tensor spread(const at::Tensor& weight, const at::Tensor& x) const {
    const at::Tensor each = weight.unsqueeze(-1);
    if (axis == x.dim() - 2) return each.expand({each.size(0), x.size(-1)}).contiguous();
    std::vector<int64_t> shape(x.dim() - axis, 1);
    shape[0] = -1;
    return weight.view(shape);
  }
};

/// Runs mixers one after the other, in the type in which sums are made.
at::Tensor mix(const std::vector<RowMixer>& mixers, const at::Tensor& x) {
  at::Tensor values = x.movedim(1, -1).to(at::toOpMathType(x.scalar_type()));
  for (const RowMixer& mixer : mixers) values = mixer(values);
  return values.to(x.scalar_type()).movedim(-1, 1);
}

}  // namespace

template <>
TileResult run_tile(const Resize& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
  const auto type = at::toOpMathType(input.data.scalar_type());
  const auto precision =
      type == at::kDouble ? Resampling::Precision::twofold : Resampling::Precision::single;
  std::vector<RowMixer> forward, backward;
  for (int axis = 0; axis < static_cast<int>(space.size()); ++axis) {
    const Resampling resampling = op.resampling(axis, space[axis]);
    if (resampling.is_copy()) continue;
    const Interval& patch = input.box[axis + 2];
    const RowMixtures mixtures = mixtures_of(resampling, run.output[axis + 2], patch, precision);
    forward.emplace_back(mixtures, axis + 1, type, run.backend());
    if (run.context.backward)
      backward.emplace_back(mixtures.adjoint(patch.length()), axis + 1, type, run.backend());
  }
  std::ranges::reverse(backward);
  return with_backward(mix(forward, input.data), [backward](const at::Tensor& gradient) {
    return Gradients{{mix(backward, gradient)}, {}};
  });
}

}  // namespace mpi4dl
