#include "train/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "backend/precision.hpp"

namespace mpi4dl {

Optimizer::Optimizer(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters),
      options_(options),
      master_(parameters.value_memory().to(wide_type(parameters.type()))) {
  const bool adaptive = options.kind != OptimizerOptions::Kind::sgd;
  if (adaptive) {
    exp_avg_ = at::zeros_like(master_);
    exp_avg_sq_ = at::zeros_like(master_);
  } else if (options.momentum != 0) {
    momentum_buffer_ = at::zeros_like(master_);
  }
  group_parameters();
}

void Optimizer::group_parameters() {
  const auto chosen = [](const std::map<std::string, double>& some, const std::string& name,
                         double otherwise) {
    const auto found = some.find(name);
    return found == some.end() ? otherwise : found->second;
  };
  for (const auto& [name, range] : parameters_.trained_ranges()) {
    const Group group{range, chosen(options_.rate_factors, name, 1),
                      chosen(options_.weight_decays, name, options_.weight_decay)};
    if (!groups_.empty() && groups_.back().rate_factor == group.rate_factor &&
        groups_.back().weight_decay == group.weight_decay)
      groups_.back().range.end = range.end;
    else
      groups_.push_back(group);
  }
}

void Optimizer::step(double learning_rate, double scale, const ShardedUpdate& update) {
  this->update(learning_rate, scale, update.shard());
  update.gather(parameters_.value_memory());
}

void Optimizer::update(double learning_rate, double scale, const Interval& shard) {
  const at::NoGradGuard no_grad;
  ++steps_;
  for (const Group& group : groups_)
    if (const Interval part = intersect(group.range, shard); !part.empty())
      update(learning_rate * group.rate_factor, scale, group, part);
  round_values(shard);
}

void Optimizer::update(double learning_rate, double scale, const Group& group,
                       const Interval& part) {
  const auto of = [&](const at::Tensor& memory) {
    return memory.defined() ? memory.narrow(0, part.begin, part.length()) : memory;
  };
  const at::Tensor values = of(master_), gradients = of(parameters_.gradient_memory());
  const Backend& backend = parameters_.backend();
  const double decay = group.weight_decay;
  if (options_.kind == OptimizerOptions::Kind::sgd) {
    backend.sgd({learning_rate, scale, decay, options_.momentum}, values, gradients,
                of(momentum_buffer_));
  } else {
    const bool decoupled = options_.kind == OptimizerOptions::Kind::adamw;
    backend.adam({learning_rate, scale, decay, decoupled, steps_}, values, gradients, of(exp_avg_),
                 of(exp_avg_sq_));
  }
}

TensorMap Optimizer::state() const {
  TensorMap found = parameters_.by_name(master_);
  const auto add = [&](const std::string& what, const at::Tensor& memory) {
    if (!memory.defined()) return;
    for (auto& [name, values] : parameters_.by_name(memory)) found[what + name] = values;
  };
  add("momentum_buffer/", momentum_buffer_);
  add("exp_avg/", exp_avg_);
  add("exp_avg_sq/", exp_avg_sq_);
  return found;
}

void Optimizer::gather(const ShardedUpdate& update) const {
  for (const at::Tensor& memory : {master_, momentum_buffer_, exp_avg_, exp_avg_sq_})
    if (memory.defined() && !memory.is_same(parameters_.value_memory())) update.gather(memory);
}

void Optimizer::restore(int64_t step) {
  steps_ = step;
  round_values(all());
}

void Optimizer::round_values(const Interval& shard) {
  const at::Tensor& values = parameters_.value_memory();
  if (master_.is_same(values)) return;
  values.narrow(0, shard.begin, shard.length())
      .copy_(master_.narrow(0, shard.begin, shard.length()));
}

}  // namespace mpi4dl
