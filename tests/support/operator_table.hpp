#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>
#include <vector>

#include "graph/operators.hpp"
#include "support/random_operators.hpp"

namespace mpi4dl::testing {

/// Is one node on whole tensors.
struct WholeNode {
  std::vector<at::Tensor> inputs, parameters;
  Extents space;  ///< of the result
  bool training = true;

  const at::Tensor& x() const { return inputs[0]; }
  bool volume() const { return x().dim() == 5; }
  at::Tensor weight(bool present) const { return present ? parameters[0] : at::Tensor(); }
  at::Tensor bias(bool present) const { return present ? parameters[1] : at::Tensor(); }
  /// Returns an option of each axis, or what it is if none was given.
  Extents each(const Extents& values, int64_t otherwise) const {
    return values.empty() ? Extents(x().dim() - 2, otherwise) : values;
  }
};

/// Says what the tests know of one kind of operator.
struct OperatorRow {
  std::string_view name;
  /// Runs the operator by libtorch alone, on whole tensors.
  std::function<at::Tensor(const WholeNode&, const Operator&)> whole;
  /// Draws random options for an input of this shape, which they need not fit.
  DrawOperator draw;
  int cases = 0;       ///< random trials of it alone on tiles; 0: it has tests of its own
  bool ties = false;   ///< these have many equal inputs
  bool layer = false;  ///< random graphs use it as a layer that keeps its size
};

/// Returns one row for each alternative of Operator.
const std::vector<OperatorRow>& operator_table();
const OperatorRow& row_of(const Operator& op);

}  // namespace mpi4dl::testing
