// Functions of each element, and softmax over channels.
#include <array>
#include <limits>

#include "import/parts.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

using Function = PointwiseFunction;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Items apply(Translation& call, const Operator& op) {
  return {call.add_pointwise(op, call.view("self"))};
}

template <PointwiseFunction function>
Items plain_function(Translation& call) {
  return apply(call, Pointwise{.function = function});
}

Items relu(Translation& call) {
  return apply(call, Relu{});
}
Items relu6(Translation& call) {
  return apply(call, Pointwise{.function = Function::hardtanh, .a = 0, .b = 6});
}
Items hardtanh(Translation& call) {
  return apply(call, Pointwise{.function = Function::hardtanh,
                               .a = call.number("min_val", -1),
                               .b = call.number("max_val", 1)});
}
Items clamp(Translation& call) {
  return apply(call, Pointwise{.function = Function::clamp,
                               .a = call.number("min", -kInfinity),
                               .b = call.number("max", kInfinity)});
}
Items gelu(Translation& call) {
  const bool by_tanh = call.text("approximate", "none") == "tanh";
  return apply(call, Pointwise{.function = by_tanh ? Function::gelu_tanh : Function::gelu});
}
Items leaky_relu(Translation& call) {
  return apply(
      call, Pointwise{.function = Function::leaky_relu, .a = call.number("negative_slope", 0.01)});
}
Items elu(Translation& call) {
  if (call.number("scale", 1) != 1 || call.number("input_scale", 1) != 1)
    refuse("its scales are not 1");
  return apply(call, Pointwise{.function = Function::elu, .a = call.number("alpha", 1)});
}
Items celu(Translation& call) {
  return apply(call, Pointwise{.function = Function::celu, .a = call.number("alpha", 1)});
}
Items softplus(Translation& call) {
  return apply(call, Pointwise{.function = Function::softplus,
                               .a = call.number("beta", 1),
                               .b = call.number("threshold", 20)});
}
Items power(Translation& call) {
  return apply(call, Pointwise{.function = Function::pow, .a = call.number("exponent")});
}
Items power_of(Translation& call, double exponent) {
  return apply(call, Pointwise{.function = Function::pow, .a = exponent});
}
Items square(Translation& call) {
  return power_of(call, 2);
}
Items square_root(Translation& call) {
  return power_of(call, 0.5);
}
Items inverse_root(Translation& call) {
  return power_of(call, -0.5);
}
Items inverse(Translation& call) {
  return power_of(call, -1);
}
Items negative(Translation& call) {
  return apply(call, Pointwise{.function = Function::scale, .a = -1, .b = 0});
}

Items prelu(Translation& call) {
  const std::optional<Weight> weight = call.weight("weight");
  if (!weight || weight->shape.size() != 1) refuse("its weight is no vector");
  return {
      call.add_pointwise(PRelu{.num_parameters = weight->shape[0]}, call.plain("self"), {weight})};
}

View combined(Translation& call, ElementwiseFunction function, const View& a, const View& b) {
  return {call.add(Elementwise{.function = function}, {a, b}).node, a.axes};
}

/// Weighs branches against each other. Their largest is subtracted first, as libtorch does, so that
/// no exponential is too large.
View softmax_of_parts(Translation& call, const std::vector<View>& parts, size_t axis) {
  using enum ElementwiseFunction;
  View most = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) most = combined(call, maximum, most, parts[i]);
  std::vector<View> shares;
  for (const View& part : parts)
    shares.push_back(call.add_pointwise(Pointwise{.function = Function::exp},
                                        combined(call, subtract, part, most)));
  View total = shares.front();
  for (size_t i = 1; i < shares.size(); ++i)
    total = {call.add(Add{}, {total, shares[i]}).node, total.axes};
  for (View& share : shares) share = combined(call, divide, share, total);
  return stack_parts(call, shares, axis);
}

Items softmax(Translation& call) {
  const View input = call.view("self");
  const size_t axis = call.axis(input, call.integer("dim"));
  if (is_channels(input.axes[axis], call.shape(input).channels))
    return {call.add_pointwise(ChannelSoftmax{}, input)};
  const std::vector<View> parts = parts_along(call, input, axis);
  if (parts.empty()) refuse("it is over an axis that is neither that of channels nor of branches");
  return {softmax_of_parts(call, parts, axis)};
}

constexpr std::array kPointwiseRows{
    TableRow{"relu", relu},
    TableRow{"relu6", relu6},
    TableRow{"hardtanh", hardtanh},
    TableRow{"clamp", clamp},
    TableRow{"clamp_min", clamp},
    TableRow{"clamp_max", clamp},
    TableRow{"sigmoid", plain_function<Function::sigmoid>},
    TableRow{"silu", plain_function<Function::silu>},
    TableRow{"tanh", plain_function<Function::tanh>},
    TableRow{"hardsigmoid", plain_function<Function::hardsigmoid>},
    TableRow{"hardswish", plain_function<Function::hardswish>},
    TableRow{"selu", plain_function<Function::selu>},
    TableRow{"mish", plain_function<Function::mish>},
    TableRow{"log_sigmoid", plain_function<Function::log_sigmoid>},
    TableRow{"exp", plain_function<Function::exp>},
    TableRow{"abs", plain_function<Function::abs>},
    TableRow{"gelu", gelu},
    TableRow{"leaky_relu", leaky_relu},
    TableRow{"elu", elu},
    TableRow{"celu", celu},
    TableRow{"softplus", softplus},
    TableRow{"pow", power},
    TableRow{"square", square},
    TableRow{"sqrt", square_root},
    TableRow{"rsqrt", inverse_root},
    TableRow{"reciprocal", inverse},
    TableRow{"neg", negative},
    TableRow{"prelu", prelu},
    TableRow{"softmax", softmax},
};

}  // namespace

std::span<const TableRow> pointwise_rows() {
  return kPointwiseRows;
}

}  // namespace mpi4dl
