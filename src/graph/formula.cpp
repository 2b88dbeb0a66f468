#include "graph/formula.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "graph/shape.hpp"

namespace mpi4dl {
namespace {

/// No formula that somebody wrote has so many steps; from a file may come one that doubles itself.
constexpr int kMostSteps = 100;
constexpr size_t kMostAxes = 8;
constexpr double kLargestWeight = 0x1p40;

using Sizes = std::vector<int64_t>;

int steps(const Formula& formula) {
  int count = 1;
  for (const Formula& operand : formula.operands) count += steps(operand);
  return count;
}

void check_shape(const Sizes& shape) {
  validate(shape.size() <= kMostAxes, "a weight of {} has too many axes", to_string(shape));
  double elements = 1;
  for (const int64_t length : shape) {
    validate(length >= 1, "a weight of {} has no elements", to_string(shape));
    elements *= static_cast<double>(length);
  }
  validate(elements <= kLargestWeight, "a weight would have {:.3g} elements", elements);
}

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes result = a.size() >= b.size() ? a : b;
  const Sizes& other = a.size() >= b.size() ? b : a;
  const size_t shift = result.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& length = result[shift + i];
    validate(length == other[i] || length == 1 || other[i] == 1,
             "weights of {} and {} cannot be combined", to_string(a), to_string(b));
    if (length == 1) length = other[i];
  }
  return result;
}

Sizes reduced(const Sizes& shape, const Sizes& axes) {
  validate(!axes.empty(), "a weight is summed up over no axes");
  Sizes result = shape;
  int64_t last = -1;
  for (const int64_t axis : axes) {
    validate(axis > last && axis < static_cast<int64_t>(shape.size()),
             "{} are no ascending axes of {}", to_string(axes), to_string(shape));
    result[axis] = 1;
    last = axis;
  }
  return result;
}

Formula checked(Formula formula) {
  check_shape(formula.shape);
  validate(steps(formula) <= kMostSteps, "a weight is computed in more than {} steps", kMostSteps);
  return formula;
}

}  // namespace

FormulaArguments arguments_of(FormulaFunction function) {
  using enum FormulaFunction;
  switch (function) {
    case parameter:
    case number:
      return {};
    case reshape:
      return {.operands = 1, .lengths = true};
    case add:
    case subtract:
    case multiply:
    case divide:
      return {.operands = 2};
    case power:
      return {.operands = 1, .number = true};
    case exp:
      return {.operands = 1};
    case sum:
    case mean:
    case norm:
      return {.operands = 1, .axes = true};
    case variance:
    case standardise:
      return {.operands = 1, .axes = true, .number = true};
  }
  return {};
}

bool Formula::operator==(const Formula& other) const {
  return function == other.function && operands == other.operands && shape == other.shape &&
         axes == other.axes && number == other.number && name == other.name &&
         frozen == other.frozen;
}

Formula parameter_formula(const std::string& name, const Sizes& shape, bool frozen) {
  return checked({.function = FormulaFunction::parameter,
                  .shape = shape.empty() ? Sizes{1} : shape,
                  .name = name,
                  .frozen = frozen});
}

Formula number_formula(double number) {
  return {.function = FormulaFunction::number, .shape = {1}, .number = number};
}

Formula reshape_formula(Formula operand, const Sizes& shape) {
  check_shape(shape);
  validate(positions(shape) == positions(operand.shape), "a weight of {} cannot be seen as {}",
           to_string(operand.shape), to_string(shape));
  if (operand.function == FormulaFunction::reshape) operand = Formula(operand.operands[0]);
  if (operand.shape == shape) return operand;
  return checked(
      {.function = FormulaFunction::reshape, .operands = {std::move(operand)}, .shape = shape});
}

Formula make_formula(FormulaFunction function, std::vector<Formula> operands, Sizes axes,
                     double number) {
  const FormulaArguments arguments = arguments_of(function);
  validate(arguments.operands > 0 && !arguments.lengths &&
               static_cast<int>(operands.size()) == arguments.operands,
           "a formula has {} operands too many or too few", operands.size());
  Formula formula{.function = function, .axes = std::move(axes), .number = number};
  formula.shape = operands[0].shape;
  if (arguments.operands == 2) formula.shape = broadcast(operands[0].shape, operands[1].shape);
  if (arguments.axes && function != FormulaFunction::standardise)
    formula.shape = reduced(formula.shape, formula.axes);
  if (function == FormulaFunction::standardise) reduced(formula.shape, formula.axes);
  formula.operands = std::move(operands);
  return checked(std::move(formula));
}

void each_parameter(Formula& formula, const std::function<void(Formula&)>& act) {
  if (formula.function == FormulaFunction::parameter) act(formula);
  for (Formula& operand : formula.operands) each_parameter(operand, act);
}

void each_parameter(const Formula& formula, const std::function<void(const Formula&)>& act) {
  if (formula.function == FormulaFunction::parameter) act(formula);
  for (const Formula& operand : formula.operands) each_parameter(operand, act);
}

bool is_trained(const Formula& formula) {
  bool trained = false;
  each_parameter(formula, [&](const Formula& parameter) { trained |= !parameter.frozen; });
  return trained;
}

int64_t elements_on_the_way(const Formula& formula) {
  int64_t elements = formula.operands.empty() ? 0 : positions(formula.shape);
  if (formula.function == FormulaFunction::standardise) elements *= 2;  // and in another order
  for (const Formula& operand : formula.operands) elements += elements_on_the_way(operand);
  return elements;
}

}  // namespace mpi4dl
