#include "graph/edit.hpp"

#include "base/error.hpp"

namespace mpi4dl {
namespace {

std::vector<ParameterChoice> choices(const Node& node) {
  std::vector<ParameterChoice> found;
  for (const auto& [parameter, formula] : node.weights)
    found.push_back({parameter.name, parameter.kind == ParameterKind::frozen, formula});
  return found;
}

/// Sets the number of outputs of a linear layer or convolution.
void set_outputs(Operator& op, int64_t outputs) {
  if (auto* linear = std::get_if<Linear>(&op)) linear->out_features = outputs;
  if (auto* convolution = std::get_if<Convolution>(&op)) convolution->out_channels = outputs;
}

}  // namespace

Graph edited(const Graph& graph, const Shape& image,
             const std::function<void(const Node& node, NodeEdit& change)>& edit) {
  Graph result(image);
  int cell = -1;
  for (size_t id = 1; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    while (cell < node.cell) result.begin_cell(graph.cells()[++cell]);
    NodeEdit change{node.op, choices(node)};
    edit(node, change);
    std::vector<Value> inputs;
    for (const int input : node.inputs) inputs.push_back({input});
    result.add(node.name.substr(graph.cells()[cell].size() + 1), change.op, inputs,
               change.parameters);
  }
  result.set_output({graph.output()});
  return result;
}

Graph with_image_size(const Graph& graph, const Extents& size) {
  return edited(graph, {graph.shape(graph.input()).channels, size},
                [](const Node&, const NodeEdit&) {});
}

const Node& class_layer(const Graph& graph) {
  const Node* node = &graph.node(graph.output());
  while (!std::holds_alternative<Linear>(node->op) &&
         !std::holds_alternative<Convolution>(node->op)) {
    validate(node->inputs.size() == 1,
             "the output {} ({}) comes from no linear layer or convolution that could have another "
             "number of classes",
             graph.node(graph.output()).name, kind(graph.node(graph.output()).op));
    node = &graph.node(node->inputs[0]);
  }
  return *node;
}

Graph with_classes(const Graph& graph, int64_t classes) {
  const Node& layer = class_layer(graph);
  for (const NodeWeight& weight : layer.weights)
    validate(!weight.formula,
             "{} makes the classes, with a {} that is computed from others and cannot have another "
             "number of them; replace the layer in Python",
             layer.name, weight.parameter.name);
  Graph result = edited(graph, graph.shape(graph.input()), [&](const Node& node, NodeEdit& change) {
    if (node.name == layer.name) set_outputs(change.op, classes);
  });
  const int64_t outputs = result.node(result.output()).shape.channels;
  validate(outputs == classes, "with {} outputs of {} the model has {} classes", classes,
           layer.name, outputs);
  return result;
}

Graph with_frozen(const Graph& graph, const std::set<std::string>& names) {
  return edited(graph, graph.shape(graph.input()), [&](const Node&, NodeEdit& change) {
    for (ParameterChoice& choice : change.parameters)
      choice.freeze([&](const std::string& name) { return names.contains(name); });
  });
}

Graph with_frozen_batch_norms(const Graph& graph) {
  int found = 0;
  Graph result = edited(graph, graph.shape(graph.input()), [&](const Node&, NodeEdit& change) {
    auto* norm = std::get_if<BatchNorm>(&change.op);
    if (norm == nullptr) return;
    norm->frozen = true;
    for (ParameterChoice& choice : change.parameters)
      choice.freeze([](const std::string&) { return true; });
    ++found;
  });
  validate(found > 0, "the model has no batch norm to freeze");
  return result;
}

}  // namespace mpi4dl
