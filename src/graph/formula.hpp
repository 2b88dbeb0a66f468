#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/definition.hpp"

namespace mpi4dl {

/// Says what a formula does with its operands, which broadcast against each other as PyTorch's do.
enum class FormulaFunction {
  parameter,    ///< is a tensor that the graph has
  number,       ///< is the same number everywhere
  reshape,      ///< has the same elements in another shape
  add,          ///< a + b
  subtract,     ///< a - b
  multiply,     ///< a * b
  divide,       ///< a / b
  power,        ///< a to the power of a number
  exp,          ///< e to the power of a
  sum,          ///< over some axes, which stay with a length of 1, as they do in the next ones
  mean,         ///< over some axes
  variance,     ///< over some axes, where the number of elements counts so many less
  norm,         ///< the square root of the sum of squares over some axes
  standardise,  ///< (a - mean) / sqrt(variance + a number) over some axes
};

template <>
inline constexpr std::array kWords<FormulaFunction>{
    Word{"parameter", FormulaFunction::parameter},
    Word{"number", FormulaFunction::number},
    Word{"reshape", FormulaFunction::reshape},
    Word{"add", FormulaFunction::add},
    Word{"subtract", FormulaFunction::subtract},
    Word{"multiply", FormulaFunction::multiply},
    Word{"divide", FormulaFunction::divide},
    Word{"power", FormulaFunction::power},
    Word{"exp", FormulaFunction::exp},
    Word{"sum", FormulaFunction::sum},
    Word{"mean", FormulaFunction::mean},
    Word{"variance", FormulaFunction::variance},
    Word{"norm", FormulaFunction::norm},
    Word{"standardise", FormulaFunction::standardise}};

/// Says which arguments a function has; each stands in the text form in this order.
struct FormulaArguments {
  int operands = 0;
  bool lengths = false, axes = false, number = false;
};
FormulaArguments arguments_of(FormulaFunction function);

/// Computes a weight from parameters, and from nothing else: weight norm, weight standardisation
/// and their like. Images have no part in it, so every rank that has the parameters computes it
/// itself, once a step, and its backward runs once a step: that is linear in the gradient of the
/// weight, so tiles, replicas and micro-batches may be summed up before or after.
///
///     multiply(v, divide(g, norm(v, 1x2x3)))                    of torch.nn.utils.weight_norm
///     multiply(standardise(w, 1x2x3, 1e-5), multiply(gain, 0.1))     of timm's ScaledStdConv2d
struct Formula {
  FormulaFunction function = FormulaFunction::number;
  std::vector<Formula> operands = {};
  std::vector<int64_t> shape = {};  ///< of the result
  std::vector<int64_t> axes = {};   ///< counted from 0, ascending
  double number = 0;
  std::string name = {};  ///< of a parameter
  bool frozen = false;    ///< a parameter is

  bool operator==(const Formula& other) const;
};

/// Makes formulas; they throw UsageError where operands or options do not fit.
Formula parameter_formula(const std::string& name, const std::vector<int64_t>& shape,
                          bool frozen = false);
Formula number_formula(double number);
Formula reshape_formula(Formula operand, const std::vector<int64_t>& shape);
Formula make_formula(FormulaFunction function, std::vector<Formula> operands,
                     std::vector<int64_t> axes = {}, double number = 0);

/// Calls `act` with each place where a parameter stands, from left to right.
void each_parameter(Formula& formula, const std::function<void(Formula& parameter)>& act);
void each_parameter(const Formula& formula,
                    const std::function<void(const Formula& parameter)>& act);

/// Returns whether the gradient of the result is wanted: one of its parameters is trained.
bool is_trained(const Formula& formula);

/// Counts the elements of all results on the way, which exist at once during backward.
int64_t elements_on_the_way(const Formula& formula);

}  // namespace mpi4dl
