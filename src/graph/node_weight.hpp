#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/formula.hpp"
#include "graph/parameter.hpp"

namespace mpi4dl {

/// Says how a node names one of its parameters and what training does with it; an empty name stands
/// for that of the node and the operator ("<node>.weight"). With a formula it is computed from
/// parameters, which that names.
struct ParameterChoice {
  std::string name = {};
  bool frozen = false;
  std::optional<Formula> formula = {};

  /// Freezes the parameters whose names are wanted, those of a formula too.
  void freeze(const std::function<bool(const std::string& name)>& wanted);
};

/// NodeWeight is what a node gives its operator as a parameter: one of the graph's, or what is
/// computed from such, which is trained where one of them is and has no name of its own.
struct NodeWeight {
  Parameter parameter;  ///< as the operator lists it
  std::optional<Formula> formula = {};

  /// Returns the parameters of the graph that it consists of.
  std::vector<Parameter> parameters() const;
};

/// Returns what becomes of a parameter of an operator by the choice of a node; throws UsageError
/// where a formula does not fit.
NodeWeight choose(const std::string& node, Parameter parameter, const ParameterChoice& choice);

}  // namespace mpi4dl
