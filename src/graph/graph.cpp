#include "graph/graph.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "graph/geometry.hpp"

namespace mpi4dl {
namespace {

int64_t product(const std::vector<int64_t>& values) {
  int64_t result = 1;
  for (const int64_t value : values) result *= value;
  return result;
}

using Parameters = std::vector<Parameter>;

/// Of convolutions and linears: a bias starts in the same range as its weight.
Parameters weight_and_bias(const std::vector<int64_t>& shape, int64_t fan_in, bool bias,
                           int64_t outputs) {
  Parameters result{{"weight", shape, Init::uniform_fan_in, fan_in}};
  if (bias) result.push_back({"bias", {outputs}, Init::uniform_fan_in, fan_in});
  return result;
}

std::vector<int64_t> weight_shape(int64_t first, int64_t second, const Extents& kernel) {
  std::vector<int64_t> shape{first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

Parameters scale_and_shift(int64_t channels) {
  return {{.name = "weight", .shape = {channels}, .init = Init::ones},
          {.name = "bias", .shape = {channels}, .init = Init::zeros}};
}

Parameters parameters(const Convolution& op, const Shape& input) {
  const int64_t in = input.channels / op.groups;
  return weight_and_bias(weight_shape(op.out_channels, in, op.kernel), in * product(op.kernel),
                         op.bias, op.out_channels);
}

/// torch takes the second axis of any weight for its inputs, here the outputs of a group.
Parameters parameters(const TransposedConvolution& op, const Shape& input) {
  const int64_t out = op.out_channels / op.groups;
  return weight_and_bias(weight_shape(input.channels, out, op.kernel), out * product(op.kernel),
                         op.bias, op.out_channels);
}

Parameters parameters(const Linear& op, const Shape& input) {
  return weight_and_bias({op.out_features, input.channels}, input.channels, op.bias,
                         op.out_features);
}

Parameters parameters(const GroupNorm&, const Shape& input) {
  return scale_and_shift(input.channels);
}

Parameters parameters(const BatchNorm&, const Shape& input) {
  Parameters result = scale_and_shift(input.channels);
  result.push_back({.name = "running_mean", .shape = {input.channels}, .trainable = false});
  result.push_back(
      {.name = "running_var", .shape = {input.channels}, .init = Init::ones, .trainable = false});
  return result;
}

template <typename Op>
Parameters parameters(const Op&, const Shape&) {
  return {};
}

Parameters named_parameters(const std::string& node, const Operator& op, const Shape& input) {
  Parameters result =
      std::visit([&](const auto& alternative) { return parameters(alternative, input); }, op);
  for (Parameter& parameter : result) parameter.name = node + "." + parameter.name;
  return result;
}

/// What a node cannot do with its inputs, before the reason.
std::string complaint(const std::string& node, const Operator& op, const std::string& inputs) {
  if (std::holds_alternative<Add>(op)) return inputs + " cannot be added";
  if (std::holds_alternative<Concat>(op)) return inputs + " cannot be concatenated";
  return fmt::format("{} ({}) cannot read {}", node, kind(op), inputs);
}

std::string describe(const std::vector<const Node*>& inputs) {
  std::vector<std::string> texts;
  texts.reserve(inputs.size());
  for (const Node* node : inputs)
    texts.push_back(fmt::format("{} ({})", node->name, to_string(node->shape)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

Shape shape_of_result(const std::string& name, const Operator& op,
                      const std::vector<const Node*>& inputs) {
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Node* node : inputs) shapes.push_back(node->shape);
  try {
    return result_shape(op, shapes);
  } catch (const UsageError& reason) {
    throw UsageError(fmt::format("{}: {}", complaint(name, op, describe(inputs)), reason.what()));
  }
}

}  // namespace

int64_t Parameter::elements() const {
  return product(shape);
}

Graph::Graph(const Shape& image) {
  const Input op{image};
  nodes_.push_back({.name = "input", .op = op, .shape = result_shape(op, {})});
}

void Graph::begin_cell(const std::string& name) {
  validate(std::ranges::find(cells_, name) == cells_.end(), "two cells are named {}", name);
  cells_.push_back(name);
}

Value Graph::add(const std::string& name, const Operator& op, const std::vector<Value>& inputs) {
  validate(!cells_.empty(), "node {} has no cell; begin one first", name);
  const std::string full_name = cells_.back() + "." + name;
  validate(std::ranges::find(nodes_, full_name, &Node::name) == nodes_.end(),
           "two nodes are named {}", full_name);
  validate(!inputs.empty(), "{} ({}) has no input", full_name, kind(op));

  const int id = static_cast<int>(nodes_.size());
  Node node{.name = full_name, .op = op, .cell = static_cast<int>(cells_.size()) - 1};
  std::vector<const Node*> sources;
  for (const Value& value : inputs) {
    validate(value.id >= 0 && value.id < id, "{} ({}) reads a value that is not in its graph",
             full_name, kind(op));
    node.inputs.push_back(value.id);
    sources.push_back(&nodes_[value.id]);
  }
  node.shape = shape_of_result(full_name, op, sources);
  node.parameters = named_parameters(full_name, op, sources.front()->shape);
  nodes_.push_back(std::move(node));
  return {id};
}

int64_t Graph::parameter_count() const {
  int64_t count = 0;
  for (const Node& node : nodes_)
    for (const Parameter& parameter : node.parameters)
      if (parameter.trainable) count += parameter.elements();
  return count;
}

}  // namespace mpi4dl
