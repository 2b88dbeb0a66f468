#include "train/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "ops/kernels/vectorised.hpp"
#include "ops/precision.hpp"

namespace mpi4dl {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

/// Calls `update(numbers, begin, end)` for pieces of a part of all parameters. What it does with a
/// number takes one pass over memory; each operator of libtorch would take another.
template <typename Update>
void in_one_pass(const at::Tensor& values, const Interval& part, const Update& update) {
  constexpr int64_t kPiece = int64_t{32} << 10;
  with_numbers(values, [&](auto* numbers) {
    at::parallel_for(part.begin, part.end, kPiece, [&](int64_t begin, int64_t end) {
      vectorised([&] { update(numbers, begin, end); });
    });
  });
}

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
  step(learning_rate, scale, all());
}

void Optimizer::step(double learning_rate, double scale, const Interval& part) {
  const at::NoGradGuard no_grad;
  ++steps_;
  if (options_.kind == OptimizerOptions::Kind::sgd) {
    descend(learning_rate, scale, part);
  } else {
    adapt(learning_rate, scale, part);
  }
  round_values(part);
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

void Optimizer::gather(const Communicator& holders) const {
  for (const at::Tensor& memory : {master_, momentum_, variation_})
    if (memory.defined() && !memory.is_same(parameters_.value_memory()))
      holders.gather_slices(memory);
}

void Optimizer::go_on(int64_t steps) {
  steps_ = steps;
  round_values(all());
}

void Optimizer::round_values(const Interval& part) {
  const at::Tensor& values = parameters_.value_memory();
  if (master_.is_same(values)) return;
  values.narrow(0, part.begin, part.length()).copy_(master_.narrow(0, part.begin, part.length()));
}

void Optimizer::descend(double learning_rate, double scale, const Interval& part) {
  const at::Tensor& gradients = parameters_.gradient_memory();
  in_one_pass(master_, part, [&]<typename T>(T* value, int64_t begin, int64_t end) {
    const T* gradient = gradients.data_ptr<T>();
    T* momentum = momentum_.defined() ? momentum_.data_ptr<T>() : nullptr;
    const T rate = learning_rate, size = scale, decay = options_.weight_decay,
            inertia = options_.momentum;
    MPI4DL_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      T direction = gradient[i] * size + value[i] * decay;
      if (momentum != nullptr) direction = momentum[i] = momentum[i] * inertia + direction;
      value[i] -= rate * direction;
    }
  });
}

void Optimizer::adapt(double learning_rate, double scale, const Interval& part) {
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  const bool decoupled = options_.kind == OptimizerOptions::Kind::adamw;
  const double shrinking = decoupled ? 1 - learning_rate * options_.weight_decay : 1;
  const at::Tensor& gradients = parameters_.gradient_memory();
  in_one_pass(master_, part, [&]<typename T>(T* value, int64_t begin, int64_t end) {
    const T* gradient = gradients.data_ptr<T>();
    T* momentum = momentum_.data_ptr<T>();
    T* variation = variation_.data_ptr<T>();
    const T size = scale, decay = decoupled ? 0 : options_.weight_decay, shrink = shrinking,
            rate = learning_rate / correction1, spread = 1 / std::sqrt(correction2),
            epsilon = kEpsilon, beta1 = kBeta1, beta2 = kBeta2, fresh1 = 1 - kBeta1,
            fresh2 = 1 - kBeta2;
    MPI4DL_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T direction = gradient[i] * size + value[i] * decay;
      momentum[i] = momentum[i] * beta1 + direction * fresh1;
      variation[i] = variation[i] * beta2 + direction * direction * fresh2;
      value[i] =
          value[i] * shrink - rate * momentum[i] / (std::sqrt(variation[i]) * spread + epsilon);
    }
  });
}

}  // namespace mpi4dl
