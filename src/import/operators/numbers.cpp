// Sizes, and what Python computes with them.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

Items axis_size(Translation& call) {
  const Item self = call.item("self");
  if (const auto* weight = std::get_if<Weight>(&self)) {
    const auto axes = static_cast<int64_t>(weight->shape.size());
    const int64_t dim = call.integer("dim");
    if (dim < -axes || dim >= axes) refuse("there is no axis {} of {}", dim, weight->name);
    return {weight->shape[dim < 0 ? dim + axes : dim]};
  }
  const View view = call.view("self");
  return {length(view.axes[call.axis(view, call.integer("dim"))])};
}

Items element_count(Translation& call) {
  int64_t count = 1;
  for (const Axis& axis : call.view("self").axes) count *= length(axis);
  return {count};
}

constexpr int64_t kLargest = int64_t{1} << 53;

int64_t bounded(int64_t value) {
  if (value > kLargest || value < -kLargest) refuse("a size is too large a number");
  return value;
}
int64_t whole_part(double value) {
  if (!(std::abs(value) < static_cast<double>(kLargest))) refuse("a size is too large a number");
  return static_cast<int64_t>(value);
}

/// Returns an argument by its place: Python's operators have no names for them.
Item operand(Translation& call, size_t place) {
  if (place >= call.call().arguments.size()) refuse("it has too few arguments");
  const Item found = call.item(call.call().arguments[place].first);
  if (const auto* whole = std::get_if<int64_t>(&found)) bounded(*whole);
  return found;
}

double real(const Item& item) {
  const std::optional<double> value = as_number(item);
  if (!value) refuse("it computes with a tensor where a number is expected");
  return *value;
}

/// Computes with whole numbers where both are, as Python does.
template <typename Whole, typename Real>
Items combine(Translation& call, const Whole& of_whole, const Real& of_real) {
  const Item a = operand(call, 0), b = operand(call, 1);
  const auto *x = std::get_if<int64_t>(&a), *y = std::get_if<int64_t>(&b);
  if (x != nullptr && y != nullptr) return {of_whole(*x, *y)};
  return {of_real(real(a), real(b))};
}

int64_t nonzero(int64_t value) {
  if (value == 0) refuse("it divides by zero");
  return value;
}
/// Rounds down, as Python does for either sign.
int64_t divide_down(int64_t a, int64_t b) {
  return nonzero(b) < 0 ? floor_divide(-a, -b) : floor_divide(a, b);
}

Items add(Translation& call) {
  return combine(
      call, [](int64_t a, int64_t b) { return a + b; }, [](double a, double b) { return a + b; });
}
Items subtract(Translation& call) {
  return combine(
      call, [](int64_t a, int64_t b) { return a - b; }, [](double a, double b) { return a - b; });
}
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse("a size is too large a number");
  return result;
}
Items multiply(Translation& call) {
  return combine(call, product, [](double a, double b) { return a * b; });
}
Items floor_division(Translation& call) {
  return combine(call, divide_down, [](double a, double b) { return std::floor(a / b); });
}
Items true_division(Translation& call) {
  return {real(operand(call, 0)) / real(operand(call, 1))};
}
Items remainder(Translation& call) {
  return combine(
      call, [](int64_t a, int64_t b) { return a - divide_down(a, b) * b; },
      [](double a, double b) { return a - std::floor(a / b) * b; });
}
Items power(Translation& call) {
  return {std::pow(real(operand(call, 0)), real(operand(call, 1)))};
}
Items larger(Translation& call) {
  return combine(
      call, [](int64_t a, int64_t b) { return std::max(a, b); },
      [](double a, double b) { return std::max(a, b); });
}
Items smaller(Translation& call) {
  return combine(
      call, [](int64_t a, int64_t b) { return std::min(a, b); },
      [](double a, double b) { return std::min(a, b); });
}
Items negative(Translation& call) {
  const Item a = operand(call, 0);
  if (const auto* whole = std::get_if<int64_t>(&a)) return {-*whole};
  return {-real(a)};
}
Items round_up(Translation& call) {
  return {whole_part(std::ceil(real(operand(call, 0))))};
}
Items round_down(Translation& call) {
  return {whole_part(std::floor(real(operand(call, 0))))};
}
Items truncate(Translation& call) {
  return {whole_part(std::trunc(real(operand(call, 0))))};
}
Items as_real(Translation& call) {
  return {real(operand(call, 0))};
}
Items square_root(Translation& call) {
  return {std::sqrt(real(operand(call, 0)))};
}
Items equal(Translation& call) {
  return {real(operand(call, 0)) == real(operand(call, 1))};
}
Items less(Translation& call) {
  return {real(operand(call, 0)) < real(operand(call, 1))};
}
Items less_or_equal(Translation& call) {
  return {real(operand(call, 0)) <= real(operand(call, 1))};
}
Items greater(Translation& call) {
  return {real(operand(call, 0)) > real(operand(call, 1))};
}
Items greater_or_equal(Translation& call) {
  return {real(operand(call, 0)) >= real(operand(call, 1))};
}

constexpr std::array kNumberRows{
    TableRow{"sym_size", axis_size},
    TableRow{"sym_numel", element_count},
    TableRow{"operator.add", add},
    TableRow{"operator.sub", subtract},
    TableRow{"operator.mul", multiply},
    TableRow{"operator.floordiv", floor_division},
    TableRow{"operator.truediv", true_division},
    TableRow{"operator.mod", remainder},
    TableRow{"operator.pow", power},
    TableRow{"operator.neg", negative},
    TableRow{"operator.eq", equal},
    TableRow{"operator.lt", less},
    TableRow{"operator.le", less_or_equal},
    TableRow{"operator.gt", greater},
    TableRow{"operator.ge", greater_or_equal},
    TableRow{"torch.sym_max", larger},
    TableRow{"torch.sym_min", smaller},
    TableRow{"torch.sym_float", as_real},
    TableRow{"torch.sym_int", truncate},
    TableRow{"torch._sym_sqrt", square_root},
    TableRow{"math.ceil", round_up},
    TableRow{"math.floor", round_down},
    TableRow{"math.trunc", truncate},
};

}  // namespace

std::span<const TableRow> number_rows() {
  return kNumberRows;
}

}  // namespace mpi4dl
