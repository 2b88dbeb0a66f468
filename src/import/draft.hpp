#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace mpi4dl {

/// Is a node of a graph whose cells are not known yet.
struct DraftNode {
  Operator op;
  std::vector<int> inputs = {};  ///< ids of nodes that come before this one
  std::vector<ParameterChoice> parameters = {};
  Shape shape = {};
  int64_t stride = 1;       ///< by how much operators have made the image smaller on the way here
  std::string module = {};  ///< the dotted path of the module it belongs to
  std::string label = {};   ///< the name of its value in the file
};

/// Is a graph before it is cut into cells.
struct Draft {
  std::vector<DraftNode> nodes;  ///< the first one is the input
  int output = 0;

  Shapes input_shapes(const DraftNode& node) const;
  int64_t flops(const DraftNode& node) const;
};

/// Drops nodes on which the output does not depend.
Draft without_dead_nodes(const Draft& draft);

}  // namespace mpi4dl
