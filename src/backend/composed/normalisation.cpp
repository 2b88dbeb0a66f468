#include <ATen/ATen.h>

#include "backend/composed/composed_backend.hpp"
#include "backend/precision.hpp"

namespace mpi4dl {
namespace {

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t axis = 2; axis < x.dim(); ++axis) dims.push_back(axis);
  return dims;
}

at::Tensor wide(const at::Tensor& x) {
  return x.to(wide_type(x.scalar_type()));
}

/// Returns a value for each channel, shaped to broadcast over `x`.
at::Tensor spread(const at::Tensor& values, const at::Tensor& x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = -1;
  return values.to(wide_type(x.scalar_type())).view(shape);
}

enum Row { mean, inverse_deviation, scale, bias };

at::Tensor spread(const ChannelMap& map, Row row, const at::Tensor& x) {
  return spread(map.values.select(0, row), x);
}

at::Tensor deviations(const at::Tensor& x, const ChannelMap& map) {
  return wide(x) - spread(map, mean, x);
}

at::Tensor xhat(const at::Tensor& x, const ChannelMap& map) {
  return deviations(x, map).mul_(spread(map, inverse_deviation, x));
}

at::Tensor mapped(const at::Tensor& x, const ChannelMap& map) {
  return deviations(x, map).mul_(spread(map, scale, x)).add_(spread(map, bias, x));
}

/// Returns dy where y was not cut off.
at::Tensor passed(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map) {
  return map.relu ? wide(dy) * (mapped(x, map) > 0) : wide(dy);
}

}  // namespace

at::Tensor ComposedBackend::channel_moments(const at::Tensor& x) const {
  if (x.numel() == 0) return at::zeros({x.size(1), 3}, options(at::kDouble));
  const auto count = static_cast<double>(x.numel() / x.size(1));
  const auto [variance, mean] = at::var_mean(wide(x), all_but_channels(x), /*unbiased=*/false);
  return at::stack({at::full_like(mean, count, options(at::kDouble)), mean.to(at::kDouble),
                    variance.to(at::kDouble).mul_(count)},
                   1);
}

at::Tensor ComposedBackend::channel_sums(const at::Tensor& x) const {
  return wide(x).sum(all_but_channels(x)).to(at::kDouble);
}

ChannelStatistics ComposedBackend::statistics(const at::Tensor& moments) const {
  const at::Tensor count = moments.select(1, 0), squares = moments.select(1, 2);
  return {moments.select(1, 1).contiguous(), squares / count, squares / (count - 1).clamp_min(1)};
}

ChannelMap ComposedBackend::channel_map(const ChannelStatistics& statistics,
                                        const at::Tensor& weight, const at::Tensor& bias,
                                        double eps) const {
  const at::Tensor inverse = (statistics.variance.to(at::kDouble) + eps).rsqrt();
  return {at::stack(
      {statistics.mean.to(at::kDouble), inverse, weight * inverse, bias.to(at::kDouble)})};
}

void ComposedBackend::normalise(const at::Tensor& x, const ChannelMap& map,
                                const at::Tensor& residual, const at::Tensor& y) const {
  at::Tensor result = mapped(x, map);
  if (residual.defined()) result.add_(residual);
  y.copy_(map.relu ? result.clamp_min(0) : result);
}

at::Tensor ComposedBackend::gradient_sums(const at::Tensor& dy, const at::Tensor& x,
                                          const ChannelMap& map) const {
  const at::Tensor counted = passed(dy, x, map);
  const auto dims = all_but_channels(x);
  return at::stack({counted.sum(dims), (counted * xhat(x, map)).sum(dims)}).to(at::kDouble);
}

at::Tensor ComposedBackend::gradient_means(const at::Tensor& sums,
                                           const at::Tensor& moments) const {
  return sums / moments.select(1, 0);
}

std::vector<at::Tensor> ComposedBackend::rows(const at::Tensor& matrix) const {
  return matrix.clone().unbind(0);
}

void ComposedBackend::normalise_backward(const at::Tensor& dy, const at::Tensor& x,
                                         const ChannelMap& map, const at::Tensor& means,
                                         const at::Tensor& dx) const {
  at::Tensor result = passed(dy, x, map);
  if (means.defined())
    result = result -
             xhat(x, map).mul_(spread(means.select(0, 1), x)).add_(spread(means.select(0, 0), x));
  dx.copy_(result * spread(map, scale, x));
}

}  // namespace mpi4dl
