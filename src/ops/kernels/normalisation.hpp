#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace mpi4dl {

/// One for each channel. Plain numbers: a layer has few, and libtorch takes a microsecond for any.
using Numbers = std::vector<double>;

/// The numbers of a vector of any type.
Numbers numbers_of(const at::Tensor& vector);

/// y = (x - mean) * scale + bias for each channel, and then, if asked for, max(y, 0).
struct ChannelMap {
  Numbers mean, inverse_deviation, scale, bias;
  bool relu = false;
};

/// Means over all pixels of dy and of dy * xhat.
struct GradientMeans {
  Numbers gradient, with_xhat;
};

// Each is one pass over memory for float32, float64 and bfloat16 (which compute in float32) on the
// CPU with channels side by side, and a composition of libtorch's operators elsewhere. Tensors are
// (N, C, ...) and may be views with gaps between their rows.

/// For each channel count, mean and sum of squared deviations from it: float64, C x 3.
at::Tensor channel_moments(const at::Tensor& x);

/// The sum of each channel: float64, C.
at::Tensor channel_sums(const at::Tensor& x);

/// Writes y. What is in `addend`, if it is defined, is added before the ReLU.
void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& addend,
               const at::Tensor& y);

/// The sums over all pixels of dy and of dy * xhat, where y was not cut off: float64, 2 x C. ReLU's
/// cut is computed again from x, so nobody needs to keep y.
at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map);

/// Writes dx = scale * (dy - means.gradient - means.with_xhat * xhat), where dy counts only if y
/// was not cut off; without means dx = scale * dy. `dx` may be the memory of `dy`.
void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const GradientMeans* means, const at::Tensor& dx);

}  // namespace mpi4dl
