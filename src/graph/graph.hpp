#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/node_weight.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

/// Names the result of one node.
struct Value {
  int id = -1;
  bool operator==(const Value&) const = default;
};

struct Node {
  std::string name;  ///< dotted and unique: "stage0.block1.r2.conv"
  Operator op;
  std::vector<int> inputs = {};  ///< ids of nodes that come before this one
  Shape shape = {};              ///< of the result, for one image
  int cell = 0;
  /// Lists what the operator is given, as it lists its parameters; batch norm: weight, bias,
  /// running_mean, running_var.
  std::vector<NodeWeight> weights = {};
  /// Lists the parameters that these are or are computed from: the same, unless some are computed.
  std::vector<Parameter> parameters = {};
};

/// Graph is a model as a graph of operators, written once and for any layout.
///
///     Graph graph({.channels = 3, .space = {512, 512}});
///     graph.begin_cell("stem");
///     Value x = graph.add("conv", Convolution{.out_channels = 16, .kernel = {3, 3}, .padding = {1,
///     1}},
///                         {graph.input()});
///     x = graph.add("bn", BatchNorm{}, {x});
///     ...
///     graph.set_output(x);
///
/// Nodes are in the order of their making, so inputs come before their users. Cells are what a
/// balance counts; the name of a node is "<cell>.<name>". Shapes, parameters and costs follow from
/// the graph without running it; a mismatch is an error that names both nodes.
///
/// Parameters are named after their node unless the builder names them. Nodes that name the same
/// one share it.
class Graph {
 public:
  explicit Graph(const Shape& image);

  Value input() const { return {0}; }
  /// Begins the cell that all following nodes belong to. The input node belongs to the first one.
  void begin_cell(const std::string& name);
  /// Adds a node and returns its result. `parameters` has a choice for each that the operator
  /// lists, from the first on; the rest are trained and named after the node.
  Value add(const std::string& name, const Operator& op, const std::vector<Value>& inputs,
            const std::vector<ParameterChoice>& parameters = {});
  void set_output(Value value) { output_ = value.id; }

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[id]; }
  const Shape& shape(Value value) const { return nodes_[value.id].shape; }
  const std::vector<std::string>& cells() const { return cells_; }
  int output() const { return output_; }

  /// Counts the elements of all trained parameters; one that nodes share counts once.
  int64_t parameter_count() const;

 private:
  std::vector<NodeWeight> choose_weights(const std::string& node,
                                         const std::vector<Parameter>& parameters,
                                         const std::vector<ParameterChoice>& choices);
  void share(const std::string& node, const Parameter& parameter);

  std::vector<Node> nodes_;
  std::vector<std::string> cells_;
  std::set<std::string> node_names_, cell_names_;
  std::map<std::string, Parameter> parameters_;  // by name
  double operations_ = 0;                        // of all nodes
  int output_ = 0;
};

/// Returns the parameters of some nodes, in their order; one that nodes share stands with the first
/// of them.
std::vector<Parameter> distinct_parameters(const Graph& graph, const std::vector<int>& nodes);

/// Returns the weights that some nodes compute, likewise.
std::vector<NodeWeight> distinct_formulas(const Graph& graph, const std::vector<int>& nodes);

/// Counts the floating-point operations of a node's forward for `pixels` output positions of one
/// image.
int64_t flops(const Graph& graph, const Node& node, int64_t pixels);
int64_t flops_per_image(const Graph& graph);

}  // namespace mpi4dl
