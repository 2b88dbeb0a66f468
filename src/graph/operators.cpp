#include "graph/operators.hpp"

#include <algorithm>
#include <type_traits>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

// Far beyond any image, and small enough that sums and products of a few of them fit into int64_t.
constexpr double kMostElements = 0x1p46;
constexpr int64_t kLargestOption = int64_t{1} << 30;  // of options and axes
constexpr size_t kMostInputs = 1 << 16;

double positions_of(const Extents& lengths) {
  double product = 1;
  for (const int64_t length : lengths) product *= static_cast<double>(length);
  return product;
}

void check_number(std::string_view option, int64_t value) {
  validate(value >= -kLargestOption && value <= kLargestOption, "its {} of {} is too large", option,
           value);
}
void check_number(std::string_view option, const Extents& values) {
  for (const int64_t value : values) check_number(option, value);
}
void check_number(std::string_view option, const Shape& shape) {
  check_number(option, shape.channels);
  check_number(option, shape.space);
}
// What is no size may have any value that its definition accepts.
void check_number(std::string_view /*option*/, bool /*value*/) {}
void check_number(std::string_view /*option*/, double /*value*/) {}
void check_number(std::string_view /*option*/, const std::vector<double>& /*values*/) {}
template <typename E>
  requires std::is_enum_v<E>
void check_number(std::string_view /*option*/, E /*value*/) {}

/// Throws where the result could not be computed from options: they may come from files too.
void check_options(const Operator& op, const Shapes& inputs) {
  validate(inputs.size() <= kMostInputs, "it reads {} values", inputs.size());
  std::visit(
      []<typename Op>(const Op& its) {
        std::apply(
            [&](const auto&... field) { (check_number(field.name, its.*field.member), ...); },
            Op::kFields);
      },
      op);
}

/// Throws where elements or operations cannot be counted: sizes may come from files.
void check_countable(const Operator& op, const Shapes& inputs, const Shape& result) {
  check_number("size", result.space);
  const double elements = static_cast<double>(result.channels) * positions_of(result.space);
  validate(elements <= kMostElements, "it would have {:.3g} elements", elements);
  double most = 1;  // operations for an element
  for (const Shape& shape : inputs) most = std::max(most, static_cast<double>(shape.channels));
  std::visit(
      [&]<typename Op>(const Op& its) {
        if constexpr (HasKernel<Op>) most *= positions_of(its.kernel);
      },
      op);
  validate(elements * most <= kMostOperations, "it would take {:.3g} operations", elements * most);
}

}  // namespace

std::string kind(const Operator& op) {
  return std::visit([]<typename Op>(const Op&) { return std::string(Op::kName); }, op);
}

const Properties& properties(const Operator& op) {
  return std::visit([]<typename Op>(const Op&) -> const Properties& { return Op::kProperties; },
                    op);
}

Shape result_shape(const Operator& op, const Shapes& inputs) {
  check_options(op, inputs);
  const Shape shape = std::visit([&](const auto& its) { return its.result(inputs); }, op);
  check_countable(op, inputs, shape);
  return shape;
}

Interval needed_rows(const Operator& op, const Rows& rows) {
  if (rows.outputs.empty()) return {};
  return std::visit([&](const auto& its) { return its.need(rows); }, op);
}

std::vector<Window> windows(const Operator& op, int spatial_axes) {
  return std::visit(
      [&]<typename Op>(const Op& its) -> std::vector<Window> {
        if constexpr (Windowed<Op>) {
          return all_windows(its, spatial_axes);
        } else {
          return {};
        }
      },
      op);
}

std::vector<Parameter> parameters(const Operator& op, const Shapes& inputs) {
  return std::visit([&](const auto& its) { return its.parameters(inputs); }, op);
}

int64_t flops(const Operator& op, const NodeWork& work) {
  return std::visit([&](const auto& its) { return its.flops(work); }, op);
}

ForwardMemory forward_memory(const Operator& op, const TilePlacement& place) {
  return std::visit([&](const auto& its) { return its.forward_memory(place); }, op);
}

BackwardMemory backward_memory(const Operator& op, const TilePlacement& place) {
  return std::visit([&](const auto& its) { return its.backward_memory(place); }, op);
}

}  // namespace mpi4dl
