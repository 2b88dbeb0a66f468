// Sums, products and such of two values, of a value and a number, of a value and a learned scale.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

using Function = ElementwiseFunction;

constexpr double kRounding = 1e-12;

/// Returns the axes of a result, where those of the operands are aligned from the last on as
/// PyTorch does; refuses what a map and a pooled value, of this alignment, cannot be.
Axes aligned(const View& a, const View& b) {
  Axes result = a.axes.size() >= b.axes.size() ? a.axes : b.axes;
  const Axes& other = a.axes.size() >= b.axes.size() ? b.axes : a.axes;
  const size_t shift = result.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    Axis& axis = result[shift + i];
    if (are_alike(axis, other[i])) {
      if (length(axis) == 1) axis = other[i];
      continue;
    }
    if (length(axis) == 1 && axis.empty())
      axis = other[i];
    else if (!other[i].empty())
      refuse("it combines axes of {} and {} that are not alike", to_string(a.axes),
             to_string(b.axes));
  }
  if (shift > 0 && !other.empty())
    refuse("it combines {} and {}", to_string(a.axes), to_string(b.axes));
  return result;
}

/// Maps of one shape are added by the operator that others fuse.
View combine(Translation& call, Function function, const View& a, const View& b) {
  const Axes axes = aligned(a, b);
  const bool alike = call.shape(a) == call.shape(b);
  const Operator op = function == Function::add && alike && a.node != b.node
                          ? Operator(Add{})
                          : Operator(Elementwise{.function = function});
  const View result = call.add(op, {a, b});
  return {result.node, replace_shape(axes, call.shape(result))};
}

View scale(Translation& call, const View& view, double factor, double shift) {
  if (factor == 1 && shift == 0) return view;
  return call.add_pointwise(
      Pointwise{.function = PointwiseFunction::scale, .a = factor, .b = shift}, view);
}

/// Returns where a learned scale goes with the channels of a view: all its other axes are 1 long.
bool goes_with_channels(Translation& call, const Weight& weight, const View& view) {
  if (weight.shape.size() > view.axes.size()) return false;
  const size_t shift = view.axes.size() - weight.shape.size();
  for (size_t i = 0; i < weight.shape.size(); ++i)
    if (weight.shape[i] != 1 && (!is_channels(view.axes[shift + i], call.shape(view).channels) ||
                                 weight.shape[i] != call.shape(view).channels))
      return false;
  return true;
}

void check_channels_of(Translation& call, const Weight& weight, const View& view) {
  if (!goes_with_channels(call, weight, view))
    refuse("{} is neither one number for each channel of {} nor one for all", weight.name,
           to_string(view.axes));
}

bool is_one_number(const Weight& weight) {
  return std::ranges::all_of(weight.shape, [](int64_t length) { return length == 1; });
}

View scale_channels(Translation& call, const View& view, const Weight& weight) {
  check_channels_of(call, weight, view);
  return call.add_pointwise(ChannelScale{.shared = is_one_number(weight)}, view, {weight});
}

bool is_constant(Translation& call, const Weight& weight) {
  return !weight.formula && !call.state().program.tensors->stored(weight.name).trained;
}

/// Returns a constant that is named after a parameter of this call's node.
Weight constant(Translation& call, const std::string& parameter, const Weight& like,
                const at::Tensor& value) {
  return {.name = fmt::format("{}.{}", call.call().results.front(), parameter),
          .shape = like.shape,
          .value = value};
}

at::Tensor value_of(Translation& call, const Weight& weight) {
  return call.state().program.tensors->read(weight.name).to(at::kDouble);
}

/// Adds a learned number or a constant to each channel.
View shift_channels(Translation& call, const View& view, const Weight& weight, double factor) {
  check_channels_of(call, weight, view);
  const ChannelScale op{.bias = true, .shared = is_one_number(weight)};
  const Weight ones = constant(call, "weight", weight, at::ones(weight.shape, at::kDouble));
  if (is_constant(call, weight))
    return call.add_pointwise(
        op, view, {ones, constant(call, "bias", weight, factor * value_of(call, weight))});
  if (factor != 1 && factor != -1) refuse("it adds a multiple of a learned number");
  return scale(call, call.add_pointwise(op, scale(call, view, factor, 0), {ones, weight}), factor,
               0);
}

/// Divides each channel by a constant, or multiplies it by the reciprocal of a learned number.
View divide_channels(Translation& call, const View& view, const Weight& weight) {
  if (!is_constant(call, weight))
    return scale_channels(
        call, view,
        computed_weight(call, make_formula(FormulaFunction::power, {formula_of(call, weight)}, {},
                                           /*number=*/-1)));
  return scale_channels(call, view,
                        constant(call, "weight", weight, value_of(call, weight).reciprocal()));
}

/// Returns a tensor of one element as a number, where it is a constant of the file.
Item number_if_constant(Translation& call, const Item& item) {
  const auto* weight = std::get_if<Weight>(&item);
  if (weight == nullptr || weight->formula) return item;
  const ProgramTensors& tensors = *call.state().program.tensors;
  const StoredTensor& stored = tensors.stored(weight->name);
  for (const int64_t length : weight->shape)
    if (length != 1) return item;
  if (stored.trained) return item;
  return tensors.read(weight->name).to(at::kDouble).item<double>();
}

struct Operands {
  Item self, other;
};

Operands operands(Translation& call) {
  return {number_if_constant(call, call.item("self")),
          number_if_constant(call, call.item("other"))};
}

/// Reads random numbers that become a mask.
Noise shifted(Noise noise, double by) {
  if (noise.stage != Noise::Stage::uniform) refuse("it adds a number to a mask");
  noise.stage = Noise::Stage::shifted;
  noise.keep = by;
  return noise;
}
Noise scaled(Noise noise, double factor) {
  if (noise.stage != Noise::Stage::mask) refuse("it multiplies random numbers that are no mask");
  noise.scale *= factor;
  return noise;
}

/// Says whose elements a mask drops together: its shape is that of the value, or 1 where it counts
/// for all.
DropoutUnit unit_of(Translation& call, const Noise& noise, const View& view) {
  const std::vector<int64_t> sizes = lengths(view.axes);
  if (sizes.size() < 2) refuse("it multiplies a value without channels by random numbers");
  if (noise.shape == sizes) return DropoutUnit::element;
  std::vector<int64_t> images(sizes.size(), 1), channels(sizes.size(), 1);
  images[0] = channels[0] = sizes[0];
  channels[1] = sizes[1];
  if (noise.shape == images) return DropoutUnit::image;
  if (noise.shape == channels && is_channels(view.axes[1], call.shape(view).channels))
    return DropoutUnit::channel;
  refuse("it multiplies by random numbers of another shape than images, channels or elements");
}

/// Is a view that a number has been multiplied with.
struct Scaled {
  View view;
  double factor;
};

Scaled without_scale(Translation& call, const View& view) {
  const DraftNode& node = call.state().draft.nodes[view.node];
  const auto* last = std::get_if<Pointwise>(&node.op);
  const bool scaled = last != nullptr && last->function == PointwiseFunction::scale && last->b == 0;
  return scaled ? Scaled{{node.inputs[0], view.axes}, last->a} : Scaled{view, 1};
}

/// A dropout divides what it keeps by the probability to keep it; here that may have been done
/// before.
View drop(Translation& call, const View& view, const Noise& noise) {
  if (noise.stage != Noise::Stage::mask) refuse("it multiplies by random numbers that are no mask");
  if (noise.keep <= 0 || noise.keep > 1) refuse("its mask keeps {} of all", noise.keep);
  if (noise.keep < 1 && !call.state().used_masks.insert(noise.number).second)
    refuse("its mask is that of another value too, and each dropout here has one of its own");
  const Dropout dropout{.probability = 1 - noise.keep, .per = unit_of(call, noise, view)};
  const auto [plain, before] = without_scale(call, view);
  const double factor = before * noise.scale * noise.keep;
  return scale(call, noise.keep == 1 ? plain : call.add_pointwise(dropout, plain),
               std::abs(factor - 1) < kRounding ? 1 : factor, 0);
}

Items multiply(Translation& call) {
  auto [self, other] = operands(call);
  if (!std::holds_alternative<View>(self)) std::swap(self, other);
  if (const auto* noise = std::get_if<Noise>(&self))
    if (const auto factor = as_number(other)) return {scaled(*noise, *factor)};
  const auto* view = std::get_if<View>(&self);
  if (view == nullptr) refuse("it multiplies parameters or random numbers");
  if (const auto factor = as_number(other)) return {scale(call, *view, *factor, 0)};
  if (const auto* weight = std::get_if<Weight>(&other))
    return {scale_channels(call, *view, *weight)};
  if (const auto* noise = std::get_if<Noise>(&other)) return {drop(call, *view, *noise)};
  return {combine(call, Function::multiply, *view, std::get<View>(other))};
}

/// Computes self + factor * other.
Items sum(Translation& call, double factor) {
  auto [self, other] = operands(call);
  const auto *x = std::get_if<View>(&self), *y = std::get_if<View>(&other);
  const auto a = as_number(self), b = as_number(other);
  if (const auto* noise = std::get_if<Noise>(&self); noise != nullptr && b)
    return {shifted(*noise, factor * *b)};
  if (const auto* noise = std::get_if<Noise>(&other); noise != nullptr && a && factor == 1)
    return {shifted(*noise, *a)};
  if (x != nullptr && b) return {scale(call, *x, 1, factor * *b)};
  if (y != nullptr && a) return {scale(call, *y, factor, *a)};
  if (const auto* weight = std::get_if<Weight>(&other); weight != nullptr && x != nullptr)
    return {shift_channels(call, *x, *weight, factor)};
  if (const auto* weight = std::get_if<Weight>(&self); weight != nullptr && y != nullptr)
    return {shift_channels(call, scale(call, *y, factor, 0), *weight, 1)};
  if (x == nullptr || y == nullptr) refuse("it adds parameters or random numbers");
  if (factor == -1) return {combine(call, Function::subtract, *x, *y)};
  return {combine(call, Function::add, *x, scale(call, *y, factor, 0))};
}

Items add(Translation& call) {
  return sum(call, call.number("alpha", 1));
}
Items subtract(Translation& call) {
  return sum(call, -call.number("alpha", 1));
}

Items reversed_subtract(Translation& call) {
  if (call.number("alpha", 1) != 1) refuse("its alpha is not 1");
  const auto shift = as_number(operands(call).other);
  if (!shift) refuse("it subtracts from a tensor");
  return {scale(call, call.view("self"), -1, *shift)};
}

Items divide(Translation& call) {
  if (!call.text("rounding_mode", "").empty()) refuse("it rounds");
  const auto [self, other] = operands(call);
  const auto divisor = as_number(other);
  if (divisor && *divisor == 0) refuse("it divides by zero");
  if (const auto* noise = std::get_if<Noise>(&self); noise != nullptr && divisor)
    return {scaled(*noise, 1 / *divisor)};
  const auto *x = std::get_if<View>(&self), *y = std::get_if<View>(&other);
  if (x != nullptr && divisor) return {scale(call, *x, 1 / *divisor, 0)};
  if (const auto* weight = std::get_if<Weight>(&other); weight != nullptr && x != nullptr)
    return {divide_channels(call, *x, *weight)};
  if (x == nullptr || y == nullptr) refuse("it divides parameters or random numbers");
  return {combine(call, Function::divide, *x, *y)};
}

template <ElementwiseFunction function>
Items extreme(Translation& call) {
  return {combine(call, function, call.view("self"), call.view("other"))};
}

constexpr std::array kElementwiseRows{
    TableRow{"add", add},
    TableRow{"sub", subtract},
    TableRow{"rsub", reversed_subtract},
    TableRow{"mul", multiply},
    TableRow{"div", divide},
    TableRow{"maximum", extreme<Function::maximum>},
    TableRow{"minimum", extreme<Function::minimum>},
};

}  // namespace

std::span<const TableRow> elementwise_rows() {
  return kElementwiseRows;
}

}  // namespace mpi4dl
