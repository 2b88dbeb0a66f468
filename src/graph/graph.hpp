#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/operators.hpp"

namespace mpi4dl {

/// The result of one node.
struct Value {
  int id = -1;
  bool operator==(const Value&) const = default;
};

/// How a parameter starts.
enum class Init {
  uniform_fan_in,  ///< uniform in +-1/sqrt(fan_in), as torch::nn starts convolutions and linears
  ones,
  zeros,
};

/// A tensor that training changes, or (buffers) that batch norm keeps.
struct Parameter {
  std::string name;  ///< stable, dotted and unique: "stage0.block1.r2.conv.weight"
  std::vector<int64_t> shape;
  Init init = Init::zeros;
  int64_t fan_in = 1;
  bool trainable = true;  ///< false for running statistics

  int64_t elements() const;
};

struct Node {
  std::string name;  ///< dotted and unique: "stage0.block1.r2.conv"
  Operator op;
  std::vector<int> inputs = {};  ///< ids of nodes that come before this one
  Shape shape = {};              ///< of the result, for one image
  int cell = 0;
  /// weight, bias (where present); batch norm: weight, bias, running_mean, running_var.
  std::vector<Parameter> parameters = {};
};

/// A model as a graph of operators, written once and for any layout.
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
/// Nodes are in the order of their making, so inputs come before their users. Cells are what
/// `--balance` counts; the name of a node is "<cell>.<name>". Shapes, parameters and costs follow
/// from the graph without running it; a mismatch is an error that names both nodes.
class Graph {
 public:
  explicit Graph(const Shape& image);

  Value input() const { return {0}; }
  /// All following nodes belong to this cell. The input node belongs to the first one.
  void begin_cell(const std::string& name);
  Value add(const std::string& name, const Operator& op, const std::vector<Value>& inputs);
  void set_output(Value value) { output_ = value.id; }

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[id]; }
  const Shape& shape(Value value) const { return nodes_[value.id].shape; }
  const std::vector<std::string>& cells() const { return cells_; }
  int output() const { return output_; }

  /// Trainable numbers in all parameters.
  int64_t parameter_count() const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::string> cells_;
  int output_ = 0;
};

/// Floating-point operations of a node's forward pass for `pixels` output positions of one image
/// (all of them: flops_per_image). A multiply-add counts as two.
int64_t flops(const Graph& graph, const Node& node, int64_t pixels);
int64_t flops_per_image(const Graph& graph);

}  // namespace mpi4dl
