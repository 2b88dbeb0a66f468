#pragma once

#include "ops/kernels/normalisation.hpp"

/// The functions of normalisation.hpp as compositions of libtorch's operators, for any device and
/// memory layout.
namespace mpi4dl::composed {

at::Tensor channel_moments(const at::Tensor& x);
at::Tensor channel_sums(const at::Tensor& x);
void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& addend,
               const at::Tensor& y);
at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map);
void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const GradientMeans* means, const at::Tensor& dx);

}  // namespace mpi4dl::composed
