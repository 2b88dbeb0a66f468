#include "graph/graph.hpp"

#include <fmt/ranges.h>

#include <set>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Says what a node cannot do with its inputs, before the reason.
std::string complaint(const std::string& node, const Operator& op, const std::string& inputs) {
  if (const std::string_view combined = properties(op).combined; !combined.empty())
    return fmt::format("{} cannot be {}", inputs, combined);
  return fmt::format("{} ({}) cannot read {}", node, kind(op), inputs);
}

std::string describe(const std::vector<const Node*>& inputs) {
  std::vector<std::string> texts;
  texts.reserve(inputs.size());
  for (const Node* node : inputs)
    texts.push_back(fmt::format("{} ({})", node->name, to_string(node->shape)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

Shapes shapes_of(const std::vector<const Node*>& nodes) {
  Shapes shapes;
  shapes.reserve(nodes.size());
  for (const Node* node : nodes) shapes.push_back(node->shape);
  return shapes;
}

Shape shape_of_result(const std::string& name, const Operator& op,
                      const std::vector<const Node*>& inputs) {
  try {
    return result_shape(op, shapes_of(inputs));
  } catch (const UsageError& reason) {
    throw UsageError(fmt::format("{}: {}", complaint(name, op, describe(inputs)), reason.what()));
  }
}

}  // namespace

Graph::Graph(const Shape& image) {
  const Input op{image};
  nodes_.push_back({.name = "input", .op = op, .shape = result_shape(op, {})});
  node_names_.insert("input");
}

void Graph::begin_cell(const std::string& name) {
  validate(cell_names_.insert(name).second, "two cells are named {}", name);
  cells_.push_back(name);
}

Value Graph::add(const std::string& name, const Operator& op, const std::vector<Value>& inputs,
                 const std::vector<ParameterChoice>& parameters) {
  validate(!cells_.empty(), "node {} has no cell; begin one first", name);
  const std::string full_name = cells_.back() + "." + name;
  validate(!node_names_.contains(full_name), "two nodes are named {}", full_name);
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
  node.weights = choose_weights(full_name, mpi4dl::parameters(op, shapes_of(sources)), parameters);
  for (const NodeWeight& weight : node.weights)
    for (const Parameter& parameter : weight.parameters()) {
      share(full_name, parameter);
      node.parameters.push_back(parameter);
    }
  operations_ += static_cast<double>(flops(*this, node, positions(node.shape.space)));
  validate(operations_ <= kMostOperations,
           "the graph up to {} would take {:.3g} operations an image", full_name, operations_);
  node_names_.insert(full_name);
  nodes_.push_back(std::move(node));
  return {id};
}

std::vector<NodeWeight> Graph::choose_weights(const std::string& node,
                                              const std::vector<Parameter>& parameters,
                                              const std::vector<ParameterChoice>& choices) {
  validate(choices.size() <= parameters.size(), "{} has {} parameters, and {} are named", node,
           parameters.size(), choices.size());
  std::vector<NodeWeight> weights;
  for (size_t i = 0; i < parameters.size(); ++i)
    weights.push_back(
        choose(node, parameters[i], i < choices.size() ? choices[i] : ParameterChoice{}));
  return weights;
}

/// Remembers a parameter; throws where nodes before have another one of its name, or something else
/// in a checkpoint might.
void Graph::share(const std::string& node, const Parameter& parameter) {
  validate(is_parameter_name(parameter.name),
           "{} cannot have a parameter {}: checkpoints have other tensors of such names", node,
           parameter.name);
  const auto [first, is_new] = parameters_.emplace(parameter.name, parameter);
  validate(is_new || first->second.shape == parameter.shape,
           "{} cannot share parameter {}: it is {} there and {} here", node, parameter.name,
           to_string(first->second.shape), to_string(parameter.shape));
  validate(is_new || first->second.kind == parameter.kind,
           "{} cannot share parameter {}: one of them is frozen or a statistic", node,
           parameter.name);
  validate(is_new || !parameter.statistic(),
           "{} cannot share parameter {}: statistics belong to one node", node, parameter.name);
}

int64_t Graph::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, parameter] : parameters_)
    if (parameter.trained()) count += parameter.elements();
  return count;
}

std::vector<Parameter> distinct_parameters(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<Parameter> found;
  std::set<std::string> names;
  for (const int id : nodes)
    for (const Parameter& parameter : graph.node(id).parameters)
      if (names.insert(parameter.name).second) found.push_back(parameter);
  return found;
}

std::vector<NodeWeight> distinct_formulas(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<NodeWeight> found;
  for (const int id : nodes)
    for (const NodeWeight& weight : graph.node(id).weights)
      if (weight.formula &&
          std::ranges::find(found, weight.formula, &NodeWeight::formula) == found.end())
        found.push_back(weight);
  return found;
}

int64_t flops(const Graph& graph, const Node& node, int64_t pixels) {
  const Shape& input = node.inputs.empty() ? node.shape : graph.node(node.inputs.front()).shape;
  return flops(node.op, {.input = input,
                         .result = node.shape,
                         .inputs = static_cast<int64_t>(node.inputs.size()),
                         .pixels = pixels});
}

int64_t flops_per_image(const Graph& graph) {
  int64_t sum = 0;
  for (const Node& node : graph.nodes()) sum += flops(graph, node, positions(node.shape.space));
  return sum;
}

}  // namespace mpi4dl
