#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace mpi4dl {

// A graph is a program: to change it is to build it again with other operators, parameters or
// images. Shapes follow anew, and what no longer fits is the graph's own error.

/// Holds what may change about a node.
struct NodeEdit {
  Operator op;
  std::vector<ParameterChoice> parameters;
};

/// Returns the graph with images of this shape, and each node as `edit` leaves it.
Graph edited(const Graph& graph, const Shape& image,
             const std::function<void(const Node& node, NodeEdit& change)>& edit);

/// Returns the graph with images of another size.
Graph with_image_size(const Graph& graph, const Extents& size);

/// Returns the linear layer or convolution that makes the classes: the last one before the output.
/// Throws UsageError where the output comes from something else.
const Node& class_layer(const Graph& graph);

/// Returns the graph with so many outputs; the class layer keeps the names of its parameters.
Graph with_classes(const Graph& graph, int64_t classes);

/// Returns the graph with these parameters frozen.
Graph with_frozen(const Graph& graph, const std::set<std::string>& names);

/// Returns the graph with batch norms that keep their running statistics, weight and bias. Throws
/// UsageError where there are none.
Graph with_frozen_batch_norms(const Graph& graph);

}  // namespace mpi4dl
