#pragma once

#include "execute/parameters.hpp"
#include "storage/tensor_source.hpp"
#include "train/sharded_update.hpp"

namespace mpi4dl {

struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  double momentum = 0.9;  ///< for SGD; Adam's first beta is its default
  double weight_decay = 0;
  /// Multiply the learning rate of some parameters, by name.
  std::map<std::string, double> rate_factors = {};
  /// Replace the weight decay of some parameters, by name.
  std::map<std::string, double> weight_decays = {};
};

/// Turns gradients into new parameters, by the formulas of torch::optim. Half types keep their
/// digits in a float32 copy.
class Optimizer {
 public:
  Optimizer(const Parameters& parameters, const OptimizerOptions& options);

  /// Updates this rank's shard of the parameters, by each gradient times `scale`, which clipping
  /// sets, and has the others' from them. Collective over the data-parallel group.
  void step(double learning_rate, double scale, const ShardedUpdate& update);

  /// Returns all that the next step depends on, sharing memory: each parameter with all its digits,
  /// and of it what torch::optim calls "exp_avg/NAME" and "exp_avg_sq/NAME" (Adam, AdamW) or
  /// "momentum_buffer/NAME" (SGD).
  TensorMap state() const;
  /// Completes the state by what other ranks have of their shards. Collective over the group.
  void gather(const ShardedUpdate& update) const;
  /// Takes over what was written into state(), as it is after so many steps.
  void restore(int64_t step);

 private:
  /// Group is a run of parameters, one after the other in memory, that learn alike.
  struct Group {
    Interval range;
    double rate_factor = 1, weight_decay = 0;
  };
  void group_parameters();
  void update(double learning_rate, double scale, const Interval& shard);
  void update(double learning_rate, double scale, const Group& group, const Interval& part);
  void round_values(const Interval& shard);
  Interval all() const { return {0, master_.numel()}; }

  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<Group> groups_;
  // Each has an element for every parameter, one after the other.
  at::Tensor master_;                // the values with all digits; they themselves unless half
  at::Tensor momentum_buffer_;       // of SGD with momentum
  at::Tensor exp_avg_, exp_avg_sq_;  // Adam's moments
  int64_t steps_ = 0;
};

}  // namespace mpi4dl
