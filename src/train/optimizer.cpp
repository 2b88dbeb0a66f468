#include "train/optimizer.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "ops/precision.hpp"

namespace mpi4dl {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

}  // namespace

Optimizer::Optimizer(Parameters& parameters, const OptimizerOptions& options) : options_(options) {
  const auto gradients = parameters.gradients();
  for (const auto& [name, value] : parameters.trainable()) {
    Slot slot{.name = name,
              .value = value,
              .gradient = gradients.at(name),
              .master = value.to(wide_type(value.scalar_type())),
              .momentum = {},
              .variation = {}};
    if (options.kind != OptimizerOptions::Kind::sgd || options.momentum != 0)
      slot.momentum = at::zeros_like(slot.master);
    if (options.kind != OptimizerOptions::Kind::sgd) slot.variation = at::zeros_like(slot.master);
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step(double learning_rate, double scale) {
  const at::NoGradGuard no_grad;
  ++steps_;
  for (Slot& slot : slots_) {
    if (options_.kind == OptimizerOptions::Kind::sgd) {
      descend(slot, learning_rate, scale);
    } else {
      adapt(slot, learning_rate, scale);
    }
    if (!slot.master.is_same(slot.value)) slot.value.copy_(slot.master);
  }
}

TensorMap Optimizer::state() const {
  TensorMap found;
  for (const Slot& slot : slots_) {
    found[slot.name] = slot.master;
    if (slot.momentum.defined()) found["momentum/" + slot.name] = slot.momentum;
    if (slot.variation.defined()) found["variation/" + slot.name] = slot.variation;
  }
  return found;
}

void Optimizer::go_on(int64_t steps) {
  steps_ = steps;
  for (Slot& slot : slots_)
    if (!slot.master.is_same(slot.value)) slot.value.copy_(slot.master);
}

void Optimizer::descend(Slot& slot, double learning_rate, double scale) {
  at::Tensor direction = slot.gradient * scale;
  if (options_.weight_decay != 0) direction.add_(slot.master, options_.weight_decay);
  if (slot.momentum.defined()) direction = slot.momentum.mul_(options_.momentum).add_(direction);
  slot.master.sub_(direction, learning_rate);
}

void Optimizer::adapt(Slot& slot, double learning_rate, double scale) {
  at::Tensor gradient = slot.gradient * scale;
  if (options_.kind == OptimizerOptions::Kind::adamw) {
    slot.master.mul_(1 - learning_rate * options_.weight_decay);
  } else if (options_.weight_decay != 0) {
    gradient.add_(slot.master, options_.weight_decay);
  }
  slot.momentum.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  slot.variation.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  const at::Tensor spread = (slot.variation.sqrt() / std::sqrt(correction2)).add_(kEpsilon);
  slot.master.addcdiv_(slot.momentum, spread, -learning_rate / correction1);
}

}  // namespace mpi4dl
