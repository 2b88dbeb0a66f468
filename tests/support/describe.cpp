#include "support/describe.hpp"

#include <fmt/format.h>

#include "graph/text.hpp"

namespace mpi4dl::testing {

std::string describe(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes())
    text += fmt::format("  {} -> {}\n", to_text(graph, node), to_string(node.shape));
  return text;
}

std::string describe(const HaloDesign& halo) {
  return halo.fused ? fmt::format("D2 with {} fused", halo.fused_layers) : "design 1";
}

}  // namespace mpi4dl::testing
