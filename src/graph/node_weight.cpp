#include "graph/node_weight.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mpi4dl {

void ParameterChoice::freeze(const std::function<bool(const std::string&)>& wanted) {
  if (!formula) {
    frozen |= wanted(name);
    return;
  }
  each_parameter(*formula, [&](Formula& parameter) { parameter.frozen |= wanted(parameter.name); });
}

/// What has as many elements as the weight starts as it would, gains and lengths start with ones.
std::vector<Parameter> NodeWeight::parameters() const {
  if (!formula) return {parameter};
  std::vector<Parameter> found;
  each_parameter(*formula, [&](const Formula& each) {
    const auto kind = each.frozen ? ParameterKind::frozen : ParameterKind::trained;
    const auto same = [&](const Parameter& other) {
      return other.name == each.name && other.shape == each.shape && other.kind == kind;
    };
    if (std::ranges::any_of(found, same)) return;
    const bool whole = positions(each.shape) == parameter.elements();
    found.push_back({.name = each.name,
                     .shape = each.shape,
                     .init = whole ? parameter.init : Init::ones,
                     .fan_in = parameter.fan_in,
                     .kind = kind});
  });
  return found;
}

NodeWeight choose(const std::string& node, Parameter parameter, const ParameterChoice& choice) {
  if (!choice.formula) {
    parameter.name = choice.name.empty() ? node + "." + parameter.name : choice.name;
    if (choice.frozen && parameter.trained()) parameter.kind = ParameterKind::frozen;
    return {parameter};
  }
  validate(!parameter.statistic(), "{} has a {} that is computed, but it is measured", node,
           parameter.name);
  validate(choice.formula->shape == parameter.shape,
           "{} has a {} of {}, and a formula for it that gives {}", node, parameter.name,
           to_string(parameter.shape), to_string(choice.formula->shape));
  int parameters = 0;
  each_parameter(*choice.formula, [&](const Formula&) { ++parameters; });
  validate(parameters > 0, "{} has a {} that is computed from no parameter", node, parameter.name);
  parameter.name = node + "." + parameter.name;
  parameter.kind = is_trained(*choice.formula) ? ParameterKind::trained : ParameterKind::frozen;
  return {parameter, choice.formula};
}

}  // namespace mpi4dl
