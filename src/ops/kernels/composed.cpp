#include "ops/kernels/composed.hpp"

#include <ATen/ATen.h>

#include "ops/precision.hpp"

namespace mpi4dl::composed {
namespace {

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t axis = 2; axis < x.dim(); ++axis) dims.push_back(axis);
  return dims;
}

at::Tensor wide(const at::Tensor& x) {
  return x.to(wide_type(x.scalar_type()));
}

/// A number per channel, shaped to broadcast over `x`.
at::Tensor spread(const Numbers& numbers, const at::Tensor& x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = -1;
  return at::tensor(numbers, at::kDouble)
      .to(x.options().dtype(wide_type(x.scalar_type())))
      .view(shape);
}

at::Tensor deviations(const at::Tensor& x, const ChannelMap& map) {
  return wide(x) - spread(map.mean, x);
}

at::Tensor mapped(const at::Tensor& x, const ChannelMap& map) {
  return deviations(x, map).mul_(spread(map.scale, x)).add_(spread(map.bias, x));
}

/// dy where y was not cut off.
at::Tensor passed(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map) {
  return map.relu ? wide(dy) * (mapped(x, map) > 0) : wide(dy);
}

at::Tensor on_host(const at::Tensor& numbers) {
  return numbers.to(at::TensorOptions(at::kCPU).dtype(at::kDouble));
}

}  // namespace

at::Tensor channel_moments(const at::Tensor& x) {
  at::Tensor moments = at::zeros({x.size(1), 3}, at::kDouble);
  if (x.numel() == 0) return moments;
  const int64_t pixels = x.numel() / x.size(1);
  const auto count = static_cast<double>(pixels);
  const auto [variance, mean] = at::var_mean(wide(x), all_but_channels(x), /*unbiased=*/false);
  moments.select(1, 0).fill_(count);
  moments.select(1, 1).copy_(mean);
  moments.select(1, 2).copy_(on_host(variance) * count);
  return moments;
}

at::Tensor channel_sums(const at::Tensor& x) {
  return on_host(wide(x).sum(all_but_channels(x)));
}

void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& addend,
               const at::Tensor& y) {
  at::Tensor result = mapped(x, map);
  if (addend.defined()) result.add_(addend);
  y.copy_(map.relu ? result.clamp_min(0) : result);
}

at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map) {
  const at::Tensor counted = passed(dy, x, map);
  const auto dims = all_but_channels(x);
  const at::Tensor xhat = deviations(x, map).mul_(spread(map.inverse_deviation, x));
  return at::stack({on_host(counted.sum(dims)), on_host((counted * xhat).sum(dims))});
}

void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const GradientMeans* means, const at::Tensor& dx) {
  at::Tensor result = passed(dy, x, map);
  if (means != nullptr) {
    const at::Tensor xhat = deviations(x, map).mul_(spread(map.inverse_deviation, x));
    result = result - spread(means->gradient, x) - xhat * spread(means->with_xhat, x);
  }
  dx.copy_(result * spread(map.scale, x));
}

}  // namespace mpi4dl::composed
