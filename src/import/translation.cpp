#include "import/translation.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "import/baked.hpp"

namespace mpi4dl {
namespace {

/// Is more than any size, option or number of axes that is meant.
constexpr int64_t kLargest = int64_t{1} << 40;
constexpr int64_t kMostMade = int64_t{1} << 24;  // elements of all tensors that are made
constexpr size_t kMostNodes = 400'000;           // a call of the file may become several

int64_t whole(const Item& item, const std::string& name) {
  if (const auto* value = std::get_if<int64_t>(&item)) return *value;
  if (const auto* value = std::get_if<bool>(&item)) return *value ? 1 : 0;
  if (const auto* value = std::get_if<double>(&item))
    if (std::abs(*value) <= 0x1p53 && *value == std::trunc(*value))
      return static_cast<int64_t>(*value);
  refuse("its {} is no whole number", name);
}

int64_t bounded(int64_t value, const std::string& name) {
  if (value < -kLargest || value > kLargest) refuse("its {} is too large a number", name);
  return value;
}

bool has_reference(const Argument& argument) {
  if (const auto* list = std::get_if<Argument::List>(&argument.value))
    return std::ranges::any_of(*list, has_reference);
  return std::holds_alternative<Reference>(argument.value);
}

/// Gives the spatial axes the lengths that they had when the file was written.
void remember_exported(Axes& axes, const std::vector<int64_t>& sizes) {
  if (sizes.size() != axes.size()) return;
  for (size_t i = 0; i < axes.size(); ++i)
    if (is_space(axes[i])) axes[i][0].exported = sizes[i];
}

}  // namespace

std::optional<double> as_number(const Item& item) {
  if (const auto* value = std::get_if<int64_t>(&item)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<double>(&item)) return *value;
  if (const auto* value = std::get_if<bool>(&item)) return *value ? 1 : 0;
  return std::nullopt;
}

Item Translation::resolve(const Argument& argument) const {
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&argument.value)) return *value;
  if (const auto* value = std::get_if<double>(&argument.value)) return *value;
  const auto* value = std::get_if<Reference>(&argument.value);
  if (value == nullptr) refuse("it has an argument of an unknown kind");
  Item found = state_.lookup(value->name);
  if (std::holds_alternative<Broken>(found)) throw FollowsFromAnother();
  return found;
}

Item Translation::item(const std::string& name) const {
  const Argument* argument = call_.find(name);
  if (argument == nullptr) refuse("its {} is missing", name);
  return resolve(*argument);
}

int64_t Translation::integer(const std::string& name, std::optional<int64_t> otherwise) const {
  if (!given(name) && otherwise) return *otherwise;
  const int64_t value = whole(item(name), name);
  const bool place = name == "start" || name == "end";  // the largest number stands for the end
  return place ? std::clamp(value, -kLargest, kLargest) : bounded(value, name);
}

double Translation::number(const std::string& name, std::optional<double> otherwise) const {
  if (!given(name) && otherwise) return *otherwise;
  const std::optional<double> value = as_number(item(name));
  if (!value) refuse("its {} is no number", name);
  return *value;
}

bool Translation::flag(const std::string& name, bool otherwise) const {
  return integer(name, otherwise ? 1 : 0) != 0;
}

std::string Translation::text(const std::string& name, const std::string& otherwise) const {
  const Argument* argument = call_.find(name);
  if (argument == nullptr) return otherwise;
  const auto* value = std::get_if<std::string>(&argument->value);
  if (value == nullptr) refuse("its {} is no text", name);
  return *value;
}

std::vector<int64_t> Translation::integers(const std::string& name,
                                           const std::vector<int64_t>& otherwise) const {
  const Argument* argument = call_.find(name);
  if (argument == nullptr) return otherwise;
  const auto* list = std::get_if<Argument::List>(&argument->value);
  if (list == nullptr) return {bounded(whole(resolve(*argument), name), name)};
  std::vector<int64_t> numbers;
  for (const Argument& each : *list) numbers.push_back(bounded(whole(resolve(each), name), name));
  return numbers;
}

Extents Translation::extents(const std::string& name, size_t axes, int64_t otherwise) const {
  Extents values = integers(name, {otherwise});
  if (values.empty()) values = {otherwise};
  if (values.size() == 1) values.resize(axes, values.front());
  if (values.size() != axes)
    refuse("its {} has {} numbers for {} spatial axes", name, values.size(), axes);
  return values;
}

bool Translation::literal(const std::string& name) const {
  const Argument* argument = call_.find(name);
  return argument != nullptr && !has_reference(*argument);
}

View Translation::view(const std::string& name) const {
  const Item found = item(name);
  const auto* view = std::get_if<View>(&found);
  if (view == nullptr)
    refuse("its {} is computed from parameters or random numbers alone, not from the image", name);
  return *view;
}

std::vector<View> Translation::views(const std::string& name) const {
  const Argument* argument = call_.find(name);
  const auto* list = argument == nullptr ? nullptr : std::get_if<Argument::List>(&argument->value);
  if (list == nullptr) refuse("its {} is no list", name);
  std::vector<View> found;
  for (const Argument& each : *list) {
    const Item item = resolve(each);
    const auto* view = std::get_if<View>(&item);
    if (view == nullptr) refuse("one of its {} is not computed from the image", name);
    found.push_back(*view);
  }
  return found;
}

View Translation::plain(const std::string& name) const {
  View found = view(name);
  if (!are_plain(found.axes, shape(found)))
    refuse("it reads a view of {} that is neither a map (N, C, H, W) nor a vector (N, C)",
           to_string(found.axes));
  return found;
}

View Translation::map(const std::string& name) const {
  View found = plain(name);
  if (!shape(found).spatial()) refuse("it reads a pooled value, which has no spatial axes");
  return found;
}

std::optional<Weight> Translation::weight(const std::string& name) const {
  if (!given(name)) return std::nullopt;
  const Item found = item(name);
  const auto* weight = std::get_if<Weight>(&found);
  if (weight == nullptr) refuse("its {} is computed, and no tensor of the file", name);
  return *weight;
}

size_t Translation::axis(const View& view, int64_t number) const {
  const auto axes = static_cast<int64_t>(view.axes.size());
  const int64_t wrapped = number < 0 ? number + axes : number;
  if (wrapped < 0 || wrapped >= axes) refuse("there is no axis {} of {}", number, axes);
  return static_cast<size_t>(wrapped);
}

ParameterChoice Translation::make(std::string name, const at::Tensor& value) {
  count_made(value.numel());
  while (state_.made.contains(name) || state_.program.tensors->tensors().contains(name))
    name += "_";
  state_.made[name] = value;
  return {.name = name, .frozen = true};
}

void Translation::count_made(int64_t elements) {
  validate(elements <= kMostMade - state_.made_elements,
           "it needs {} elements that are not in the file", elements);
  state_.made_elements += elements;
}

ParameterChoice Translation::choose(const Parameter& parameter,
                                    const std::optional<Weight>& weight) {
  if (!weight) refuse("its {} is not in the file", parameter.name);
  int64_t elements = 1;
  for (const int64_t length : weight->shape) elements *= length;
  if (weight->formula && elements == parameter.elements())
    return {.formula = reshape_formula(*weight->formula, parameter.shape)};
  if (elements != parameter.elements())
    refuse("{} is {}, and {} are needed", weight->name,
           fmt::format("{}", fmt::join(weight->shape, "x")), to_string(parameter.shape));
  if (weight->value.defined()) return make(weight->name, weight->value.reshape(parameter.shape));
  const StoredTensor& stored = state_.program.tensors->stored(weight->name);
  return {.name = weight->name, .frozen = !stored.trained && parameter.trained()};
}

int Translation::add_node(const Operator& op, const std::vector<View>& inputs,
                          const std::vector<std::optional<Weight>>& weights) {
  validate(state_.draft.nodes.size() < kMostNodes, "it has more than {} operators", kMostNodes);
  DraftNode node{.op = op, .module = call_.module, .label = call_.results.front()};
  for (const View& input : inputs) node.inputs.push_back(input.node);
  const Shapes shapes = state_.draft.input_shapes(node);
  try {
    node.shape = result_shape(op, shapes);
    for (const int input : node.inputs)
      node.stride = std::max(node.stride, state_.draft.nodes[input].stride);
    if (__builtin_mul_overflow(node.stride, stride_of(op), &node.stride)) node.stride = kLargest;
    const std::vector<Parameter> parameters = mpi4dl::parameters(op, shapes);
    ensure(weights.size() == parameters.size(), "{} of {} parameters are known", weights.size(),
           parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      node.parameters.push_back(choose(parameters[i], weights[i]));
  } catch (const UsageError& reason) {
    std::vector<std::string> texts;
    for (const Shape& shape : shapes) texts.push_back(to_string(shape));
    refuse("as {} it cannot read {}: {}", kind(op), fmt::format("{}", fmt::join(texts, " and ")),
           reason.what());
  }
  state_.draft.nodes.push_back(std::move(node));
  return static_cast<int>(state_.draft.nodes.size()) - 1;
}

View Translation::add(const Operator& op, const std::vector<View>& inputs,
                      const std::vector<std::optional<Weight>>& weights) {
  const int node = add_node(op, inputs, weights);
  View result{node, plain_axes(state_.batch, state_.draft.nodes[node].shape)};
  const auto sizes = state_.program.sizes.find(call_.results.front());
  if (sizes != state_.program.sizes.end()) remember_exported(result.axes, sizes->second);
  return result;
}

View Translation::add_pointwise(const Operator& op, const View& input,
                                const std::vector<std::optional<Weight>>& weights) {
  const int node = add_node(op, {input}, weights);
  return {node, replace_shape(input.axes, state_.draft.nodes[node].shape)};
}

Formula formula_of(Translation& call, const Weight& weight) {
  if (weight.formula) return *weight.formula;
  const StoredTensor& stored = call.state().program.tensors->stored(weight.name);
  Formula formula = parameter_formula(weight.name, stored.info.shape, !stored.trained);
  return weight.shape.empty() ? formula : reshape_formula(std::move(formula), weight.shape);
}

Weight computed_weight(const Translation& call, Formula formula) {
  return {.name = call.call().results.front(), .shape = formula.shape, .formula = formula};
}

}  // namespace mpi4dl
