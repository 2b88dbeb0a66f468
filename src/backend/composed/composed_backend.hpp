#pragma once

#include "backend/backend.hpp"

namespace mpi4dl {

/// Composes everything of libtorch's operators, on whatever device the tensors are on. Nothing here
/// asks what is in a tensor, so a device is never waited for.
class ComposedBackend : public Backend {
 public:
  using Backend::Backend;

  std::string_view name() const override { return "composed"; }

  void move(Combine how, const Patch& from, const Patch& to, const Box& box) const override;
  void read(Combine how, const Strided& host, const Patch& to, const Box& box) const override;
  void clear(const Patch& patch, const Box& box) const override;
  at::Tensor gather(const Patch& from, std::span<const Box> boxes) const override;
  void unpack(Combine how, const at::Tensor& packed, std::span<const Box> boxes,
              const Patch& to) const override;
  void pack(const Patch& from, std::span<const Box> boxes, std::byte* host) const override;

  bool wants_padded_input(const at::Tensor& x, const at::Tensor& weight,
                          int64_t groups) const override;
  at::Tensor convolve(const ConvolutionTile& tile, const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& bias, const at::Tensor& residual,
                      const at::Tensor& target) const override;
  at::Tensor convolve_backward_data(const ConvolutionTile& tile, const at::Tensor& dy,
                                    const at::Tensor& weight, at::IntArrayRef shape) const override;
  void accumulate_weight_gradient(const ConvolutionTile& tile, const at::Tensor& x,
                                  const at::Tensor& dy, const at::Tensor& sums) const override;

  at::Tensor channel_moments(const at::Tensor& x) const override;
  at::Tensor channel_sums(const at::Tensor& x) const override;
  ChannelStatistics statistics(const at::Tensor& moments) const override;
  ChannelMap channel_map(const ChannelStatistics& statistics, const at::Tensor& weight,
                         const at::Tensor& bias, double eps) const override;
  void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& residual,
                 const at::Tensor& y) const override;
  at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x,
                           const ChannelMap& map) const override;
  at::Tensor gradient_means(const at::Tensor& sums, const at::Tensor& moments) const override;
  std::vector<at::Tensor> rows(const at::Tensor& matrix) const override;
  void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                          const at::Tensor& means, const at::Tensor& dx) const override;

  at::Tensor average_pool(const PoolingTile& tile, const at::Tensor& x) const override;
  at::Tensor average_pool_backward(const PoolingTile& tile, const at::Tensor& dy,
                                   at::IntArrayRef shape) const override;

  void add_scaled(const at::Tensor& sum, const at::Tensor& elements, double scale) const override;
  void clear(const at::Tensor& vector, const Interval& part) const override;
  void update_running(const at::Tensor& running, const at::Tensor& sum, const at::Tensor& count,
                      double momentum) const override;
  void sgd(const SgdStep& step, const at::Tensor& values, const at::Tensor& gradients,
           const at::Tensor& momentum_buffer) const override;
  void adam(const AdamStep& step, const at::Tensor& values, const at::Tensor& gradients,
            const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq) const override;
};

}  // namespace mpi4dl
