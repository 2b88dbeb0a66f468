#include "train/optimizer.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "ops/precision.hpp"

namespace mpi4dl {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

}  // namespace

Optimizer::Optimizer(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters),
      options_(options),
      master_(parameters.value_memory().to(wide_type(parameters.type()))) {
  const bool adaptive = options.kind != OptimizerOptions::Kind::sgd;
  if (adaptive || options.momentum != 0) momentum_ = at::zeros_like(master_);
  if (adaptive) variation_ = at::zeros_like(master_);
}

void Optimizer::step(double learning_rate, double scale) {
  const at::NoGradGuard no_grad;
  ++steps_;
  if (options_.kind == OptimizerOptions::Kind::sgd) {
    descend(learning_rate, scale);
  } else {
    adapt(learning_rate, scale);
  }
  round_values();
}

TensorMap Optimizer::state() const {
  TensorMap found = parameters_.by_name(master_);
  const auto add = [&](const std::string& what, const at::Tensor& memory) {
    if (!memory.defined()) return;
    for (auto& [name, numbers] : parameters_.by_name(memory)) found[what + name] = numbers;
  };
  add("momentum/", momentum_);
  add("variation/", variation_);
  return found;
}

void Optimizer::go_on(int64_t steps) {
  steps_ = steps;
  round_values();
}

void Optimizer::round_values() {
  const at::Tensor& values = parameters_.value_memory();
  if (!master_.is_same(values)) values.copy_(master_);
}

void Optimizer::descend(double learning_rate, double scale) {
  at::Tensor direction = parameters_.gradient_memory();
  if (scale != 1) direction = direction * scale;
  if (options_.weight_decay != 0) direction = direction.add(master_, options_.weight_decay);
  if (momentum_.defined()) direction = momentum_.mul_(options_.momentum).add_(direction);
  master_.sub_(direction, learning_rate);
}

void Optimizer::adapt(double learning_rate, double scale) {
  at::Tensor gradient = parameters_.gradient_memory();
  if (scale != 1) gradient = gradient * scale;
  if (options_.kind == OptimizerOptions::Kind::adamw) {
    master_.mul_(1 - learning_rate * options_.weight_decay);
  } else if (options_.weight_decay != 0) {
    gradient = gradient.add(master_, options_.weight_decay);
  }
  momentum_.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  variation_.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  const at::Tensor spread = (variation_.sqrt().div_(std::sqrt(correction2))).add_(kEpsilon);
  master_.addcdiv_(momentum_, spread, -learning_rate / correction1);
}

}  // namespace mpi4dl
