#include <ATen/ATen.h>

#include <cmath>

#include "backend/composed/composed_backend.hpp"

namespace mpi4dl {

void ComposedBackend::add_scaled(const at::Tensor& sum, const at::Tensor& elements,
                                 double scale) const {
  sum.add_(elements, scale);
}

void ComposedBackend::clear(const at::Tensor& vector, const Interval& part) const {
  vector.narrow(0, part.begin, part.length()).zero_();
}

void ComposedBackend::update_running(const at::Tensor& running, const at::Tensor& sum,
                                     const at::Tensor& count, double momentum) const {
  // Where nothing was measured the sum is 0 and stays out by its weight.
  const at::Tensor weight = count.gt(0).to(running.scalar_type()).mul_(momentum);
  running.add_((sum / count.clamp_min(1) - running).mul_(weight));
}

void ComposedBackend::sgd(const SgdStep& step, const at::Tensor& values,
                          const at::Tensor& gradients, const at::Tensor& momentum_buffer) const {
  at::Tensor direction = gradients * step.scale;
  if (step.weight_decay != 0) direction.add_(values, step.weight_decay);
  if (momentum_buffer.defined()) direction = momentum_buffer.mul_(step.momentum).add_(direction);
  values.sub_(direction, step.learning_rate);
}

void ComposedBackend::adam(const AdamStep& step, const at::Tensor& values,
                           const at::Tensor& gradients, const at::Tensor& exp_avg,
                           const at::Tensor& exp_avg_sq) const {
  const AdamFactors factors(step);
  at::Tensor direction = gradients * step.scale;
  if (factors.decay != 0) direction.add_(values, factors.decay);
  exp_avg.mul_(factors.beta1).add_(direction, 1 - factors.beta1);
  exp_avg_sq.mul_(factors.beta2).addcmul_(direction, direction, 1 - factors.beta2);
  if (factors.shrink != 1) values.mul_(factors.shrink);
  values.addcdiv_(exp_avg, exp_avg_sq.sqrt().mul_(factors.spread).add_(factors.epsilon),
                  -factors.rate);
}

}  // namespace mpi4dl
