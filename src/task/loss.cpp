#include "task/loss.hpp"

#include <ATen/ATen.h>

#include "backend/precision.hpp"

namespace mpi4dl {

Loss cross_entropy(const at::Tensor& logits, const at::Tensor& labels, int64_t effective_batch) {
  if (logits.numel() == 0) return {at::zeros({}, logits.options().dtype(at::kDouble)), logits};
  const at::Tensor wide = logits.to(wide_type(logits.scalar_type()));
  const at::Tensor log_probability = wide.log_softmax(1);
  const at::Tensor chosen = log_probability.gather(1, labels.unsqueeze(1));
  const auto scale = 1.0 / static_cast<double>(effective_batch);
  at::Tensor gradient = log_probability.exp();
  gradient.scatter_add_(1, labels.unsqueeze(1), at::full_like(chosen, -1));
  return {chosen.sum().to(at::kDouble).mul_(-scale), gradient.mul_(scale).to(logits.scalar_type())};
}

Loss half_mean_square(const at::Tensor& output, int64_t effective_batch, int64_t image_elements) {
  const at::Tensor wide = output.to(wide_type(output.scalar_type()));
  const auto scale = 1.0 / static_cast<double>(effective_batch * image_elements);
  return {wide.square().sum().to(at::kDouble).mul_(scale / 2),
          (wide * scale).to(output.scalar_type())};
}

}  // namespace mpi4dl
