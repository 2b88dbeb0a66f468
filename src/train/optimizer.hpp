#pragma once

#include "comm/communicator.hpp"
#include "ops/parameters.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  double momentum = 0.9;  ///< of SGD; Adam's first beta is its default
  double weight_decay = 0;
};

/// Turns gradients into new parameters, by the formulas of torch::optim. Of ranks on one node that
/// hold the same parameters each updates its slice of them, and has the others' from them; ranks on
/// several nodes compute the same update. Half types keep their digits in a float32 copy.
class Optimizer {
 public:
  Optimizer(const Parameters& parameters, const OptimizerOptions& options);

  /// Uses each gradient times `scale`, which clipping sets.
  void step(double learning_rate, double scale = 1);
  /// The same for the parameters [begin, end) only, one after the other; the others must come from
  /// the ranks that have updated them.
  void step(double learning_rate, double scale, const Interval& part);

  /// All that the next step depends on, sharing memory: each parameter with all its digits, and
  /// what is remembered of it as "momentum/NAME" and "variation/NAME".
  TensorMap state() const;
  /// Has what other ranks remember of the slices that they have updated. Collective.
  void gather(const Communicator& holders) const;
  /// Goes on with what was written into state(), as if so many steps were done.
  void go_on(int64_t steps);

 private:
  void descend(double learning_rate, double scale, const Interval& part);
  void adapt(double learning_rate, double scale, const Interval& part);
  void round_values(const Interval& part);
  Interval all() const { return {0, master_.numel()}; }

  const Parameters& parameters_;
  OptimizerOptions options_;
  // Each has a number for every parameter, one after the other.
  at::Tensor master_;     // the values with all digits; they themselves unless they are half
  at::Tensor momentum_;   // or Adam's first moment
  at::Tensor variation_;  // Adam's second moment
  int64_t steps_ = 0;
};

}  // namespace mpi4dl
