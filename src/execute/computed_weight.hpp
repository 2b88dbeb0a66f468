#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "backend/backend.hpp"
#include "graph/formula.hpp"

namespace mpi4dl {

/// Evaluates a formula by libtorch's operators, which autograd can record, on the device and in the
/// type of the parameters.
at::Tensor evaluate(const Formula& formula, const std::map<std::string, at::Tensor>& parameters);

/// ComputedWeight is a weight that is computed from parameters, in memory of its own: once a step,
/// before the first forward. Backward adds up its gradient as it does that of a parameter; when
/// that is complete, the backward of the formula makes the gradients of the parameters of it. All
/// of that is done in the wide type, from the values that the parameters have in theirs.
class ComputedWeight {
 public:
  /// Names a parameter, its values and the sum of its gradients, undefined where it is frozen.
  struct Source {
    at::Tensor value, sum;
  };
  ComputedWeight(Formula formula, std::map<std::string, Source> sources, at::Tensor value);

  const Formula& formula() const { return formula_; }
  const at::Tensor& value() const { return value_; }
  /// Returns the sum of its gradients, which has the wide type; undefined where all is frozen.
  const at::Tensor& sum() const { return sum_; }

  void update();
  /// Sets the sum to zero unless that was done since the gradients were forgotten.
  void begin();
  void forget() { begun_ = false; }
  /// Adds the gradients of the parameters to theirs, if there is one; it is called once a step.
  void propagate(const Backend& backend);

 private:
  Formula formula_;
  std::map<std::string, Source> sources_;
  at::Tensor value_, sum_;
  bool begun_ = false;
};

}  // namespace mpi4dl
