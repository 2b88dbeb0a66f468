// What is computed from tensors of the file alone: formulas for weights.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

using Function = FormulaFunction;
using Sizes = std::vector<int64_t>;
using Formulas = std::vector<Formula>;

/// Multiplies sizes; -1 where one of them is negative, or the product is too large a number.
int64_t product(const Sizes& sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(result, size, &result)) return -1;
  return result;
}

Weight weight_argument(Translation& call, const std::string& name) {
  const std::optional<Weight> weight = call.weight(name);
  if (!weight) refuse("its {} is missing", name);
  return *weight;
}

Formula formula_argument(Translation& call, const std::string& name) {
  const Item item = call.item(name);
  if (const auto number = as_number(item)) return number_formula(*number);
  return formula_of(call, weight_argument(call, name));
}

/// Returns the place of an axis, where -1 is the last of `axes`.
int64_t wrapped(int64_t dim, int64_t axes) {
  const int64_t axis = dim < 0 ? dim + axes : dim;
  if (axis < 0 || axis >= axes) refuse("there is no axis {} of {}", dim, axes);
  return axis;
}

/// Runs a function that makes formulas; what does not fit is refused.
template <Formulas (*compute)(Translation&)>
Items weights(Translation& call) {
  try {
    Items items;
    for (const Formula& formula : compute(call)) items.emplace_back(computed_weight(call, formula));
    return items;
  } catch (const UsageError& reason) {
    refuse("{}", reason.what());
  }
}

// Other shapes: of a tensor of the file alone they need no formula.

Items seen_as(Translation& call, Weight weight, Sizes sizes) {
  const int64_t elements = product(weight.shape);
  if (const auto open = std::ranges::find(sizes, -1); open != sizes.end()) {
    *open = 1;
    const int64_t known = product(sizes);
    *open = known > 0 ? elements / known : 0;
  }
  if (product(sizes) != elements) refuse("{} cannot be seen in another shape", weight.name);
  if (weight.formula && !sizes.empty())
    return {computed_weight(call, reshape_formula(*weight.formula, sizes))};
  weight.shape = std::move(sizes);
  return {weight};
}

Items reshape(Translation& call) {
  return seen_as(call, weight_argument(call, "self"),
                 call.integers(call.given("shape") ? "shape" : "size"));
}

Items reshape_as(Translation& call) {
  return seen_as(call, weight_argument(call, "self"), weight_argument(call, "other").shape);
}

Items flatten(Translation& call) {
  const Weight self = weight_argument(call, "self");
  const auto axes = static_cast<int64_t>(self.shape.size());
  const int64_t first = wrapped(call.integer("start_dim", 0), axes);
  const int64_t last = wrapped(call.integer("end_dim", -1), axes);
  if (first > last) refuse("its first axis {} comes after its last, {}", first, last);
  Sizes sizes(self.shape.begin(), self.shape.begin() + first);
  sizes.push_back(product({self.shape.begin() + first, self.shape.begin() + last + 1}));
  sizes.insert(sizes.end(), self.shape.begin() + last + 1, self.shape.end());
  return seen_as(call, self, sizes);
}

Items squeeze(Translation& call) {
  const Weight self = weight_argument(call, "self");
  std::vector<bool> chosen(self.shape.size(), !call.given("dim"));
  for (const int64_t dim : call.integers("dim")) chosen[wrapped(dim, std::ssize(chosen))] = true;
  Sizes sizes;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (!chosen[i] || self.shape[i] != 1) sizes.push_back(self.shape[i]);
  return seen_as(call, self, sizes);
}

Items unsqueeze(Translation& call) {
  const Weight self = weight_argument(call, "self");
  Sizes sizes = self.shape;
  sizes.insert(sizes.begin() + wrapped(call.integer("dim"), std::ssize(sizes) + 1), 1);
  return seen_as(call, self, sizes);
}

// Element by element.

template <FormulaFunction function>
Formulas combined(Translation& call) {
  if (!call.text("rounding_mode", "").empty()) refuse("it rounds");
  Formula a = formula_argument(call, "self"), b = formula_argument(call, "other");
  const double alpha = call.number("alpha", 1);
  if (alpha != 1) b = make_formula(Function::multiply, {std::move(b), number_formula(alpha)});
  return {make_formula(function, {std::move(a), std::move(b)})};
}

Formulas reversed_subtract(Translation& call) {
  if (call.number("alpha", 1) != 1) refuse("its alpha is not 1");
  return {make_formula(Function::subtract,
                       {formula_argument(call, "other"), formula_argument(call, "self")})};
}

Formulas negative(Translation& call) {
  return {make_formula(Function::multiply, {formula_argument(call, "self"), number_formula(-1)})};
}

Formula raised(Formula formula, double exponent) {
  return make_formula(Function::power, {std::move(formula)}, {}, exponent);
}
Formulas power(Translation& call) {
  return {raised(formula_argument(call, "self"), call.number("exponent"))};
}
Formulas square(Translation& call) {
  return {raised(formula_argument(call, "self"), 2)};
}
Formulas square_root(Translation& call) {
  return {raised(formula_argument(call, "self"), 0.5)};
}
Formulas inverse_root(Translation& call) {
  return {raised(formula_argument(call, "self"), -0.5)};
}
Formulas inverse(Translation& call) {
  return {raised(formula_argument(call, "self"), -1)};
}
Formulas exponential(Translation& call) {
  return {make_formula(Function::exp, {formula_argument(call, "self")})};
}

// Over axes.

Sizes all_axes(const Formula& formula) {
  Sizes axes(formula.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Sizes all_but(const Formula& formula, int64_t axis) {
  Sizes axes = all_axes(formula);
  axes.erase(axes.begin() + axis);
  return axes;
}

/// Returns the axes that a call takes together: all of them where it names none.
Sizes reduced_axes(Translation& call, const Formula& formula) {
  const Sizes dims = call.integers("dim");
  if (dims.empty()) return all_axes(formula);
  Sizes axes;
  for (const int64_t dim : dims) axes.push_back(wrapped(dim, std::ssize(formula.shape)));
  std::ranges::sort(axes);
  return axes;
}

/// Takes away the axes that were taken together, unless the call keeps them.
Formula without_axes(Translation& call, Formula formula, const Sizes& axes) {
  if (call.flag("keepdim", false)) return formula;
  Sizes sizes;
  for (int64_t axis = 0; axis < std::ssize(formula.shape); ++axis)
    if (!std::ranges::binary_search(axes, axis)) sizes.push_back(formula.shape[axis]);
  return reshape_formula(std::move(formula), sizes.empty() ? Sizes{1} : sizes);
}

template <FormulaFunction function>
Formulas reduced(Translation& call) {
  Formula self = formula_argument(call, "self");
  const Sizes axes = reduced_axes(call, self);
  return {without_axes(call, make_formula(function, {std::move(self)}, axes), axes)};
}

Formula variance_of(Translation& call) {
  Formula self = formula_argument(call, "self");
  const Sizes axes = reduced_axes(call, self);
  const double correction = call.number("correction", call.flag("unbiased", true) ? 1 : 0);
  return without_axes(call, make_formula(Function::variance, {std::move(self)}, axes, correction),
                      axes);
}
Formulas variance(Translation& call) {
  return {variance_of(call)};
}
Formulas deviation(Translation& call) {
  return {raised(variance_of(call), 0.5)};
}
Formulas variance_and_mean(Translation& call) {
  return {variance_of(call), reduced<Function::mean>(call)[0]};
}
Formulas deviation_and_mean(Translation& call) {
  return {raised(variance_of(call), 0.5), reduced<Function::mean>(call)[0]};
}

Formulas norm(Translation& call) {
  const std::string order = call.given("ord") ? "ord" : "p";
  if (call.number(order, 2) != 2) refuse("it is no norm of squares");
  return reduced<Function::norm>(call);
}

// Layers that were made for images.

/// Has an element for each of the second axis go with it.
Formula per_channel(Formula formula, const Formula& of) {
  Sizes sizes(of.shape.size(), 1);
  sizes[1] = product(formula.shape);
  return reshape_formula(std::move(formula), sizes);
}

Formulas batch_norm(Translation& call) {
  const Formula input = formula_argument(call, "input");
  if (call.given("running_mean") || input.shape.size() < 2)
    refuse("it normalises a weight by running statistics");
  Formula result =
      make_formula(Function::standardise, {input}, all_but(input, 1), call.number("eps", 1e-5));
  if (call.given("weight"))
    result = make_formula(Function::multiply,
                          {result, per_channel(formula_argument(call, "weight"), input)});
  if (call.given("bias"))
    result =
        make_formula(Function::add, {result, per_channel(formula_argument(call, "bias"), input)});
  return {result};
}

/// v * (g / its norm over all axes but one; -1 stands for all)
Formulas weight_norm(Translation& call) {
  const Formula v = formula_argument(call, "v"), g = formula_argument(call, "g");
  const int64_t dim = call.integer("dim", 0);
  const Sizes axes = dim == -1 ? all_axes(v) : all_but(v, wrapped(dim, std::ssize(v.shape)));
  return {make_formula(
      Function::multiply,
      {v, make_formula(Function::divide, {g, make_formula(Function::norm, {v}, axes)})})};
}

constexpr std::array kWeightRows{
    TableRow{"view", reshape},
    TableRow{"reshape", reshape},
    TableRow{"_unsafe_view", reshape},
    TableRow{"view_as", reshape_as},
    TableRow{"reshape_as", reshape_as},
    TableRow{"flatten", flatten},
    TableRow{"squeeze", squeeze},
    TableRow{"unsqueeze", unsqueeze},
    TableRow{"add", weights<combined<Function::add>>},
    TableRow{"sub", weights<combined<Function::subtract>>},
    TableRow{"rsub", weights<reversed_subtract>},
    TableRow{"mul", weights<combined<Function::multiply>>},
    TableRow{"div", weights<combined<Function::divide>>},
    TableRow{"neg", weights<negative>},
    TableRow{"pow", weights<power>},
    TableRow{"square", weights<square>},
    TableRow{"sqrt", weights<square_root>},
    TableRow{"rsqrt", weights<inverse_root>},
    TableRow{"reciprocal", weights<inverse>},
    TableRow{"exp", weights<exponential>},
    TableRow{"sum", weights<reduced<Function::sum>>},
    TableRow{"mean", weights<reduced<Function::mean>>},
    TableRow{"var", weights<variance>},
    TableRow{"std", weights<deviation>},
    TableRow{"var_mean", weights<variance_and_mean>},
    TableRow{"std_mean", weights<deviation_and_mean>},
    TableRow{"norm", weights<norm>},
    TableRow{"linalg_vector_norm", weights<norm>},
    TableRow{"batch_norm", weights<batch_norm>},
    TableRow{"_weight_norm", weights<weight_norm>},
    TableRow{"_weight_norm_interface", weights<weight_norm>},
};

}  // namespace

std::span<const TableRow> weight_rows() {
  return kWeightRows;
}

}  // namespace mpi4dl
