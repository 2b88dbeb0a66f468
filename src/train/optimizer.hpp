#pragma once

#include <map>
#include <string>

#include "ops/parameters.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  double momentum = 0.9;  ///< of SGD; Adam's first beta is its default
  double weight_decay = 0;
};

/// Turns gradients into new parameters, by the formulas of torch::optim. Every rank that holds a
/// parameter computes the same update. Half types keep their digits in a float32 copy.
class Optimizer {
 public:
  Optimizer(Parameters& parameters, const OptimizerOptions& options);

  /// Uses each gradient times `scale`, which clipping sets.
  void step(double learning_rate, double scale = 1);

  /// All that the next step depends on, sharing memory: each parameter with all its digits, and
  /// what is remembered of it as "momentum/NAME" and "variation/NAME".
  TensorMap state() const;
  /// Goes on with what was written into state(), as if so many steps were done.
  void go_on(int64_t steps);

 private:
  struct Slot {
    std::string name;
    at::Tensor value;      // of the parameter
    at::Tensor gradient;   // shares memory with the parameters
    at::Tensor master;     // the value with all digits; the value itself unless it is half
    at::Tensor momentum;   // or Adam's first moment
    at::Tensor variation;  // Adam's second moment
  };
  void descend(Slot& slot, double learning_rate, double scale);
  void adapt(Slot& slot, double learning_rate, double scale);

  OptimizerOptions options_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace mpi4dl
