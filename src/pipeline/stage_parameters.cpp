#include "pipeline/stage_parameters.hpp"

namespace mpi4dl {
namespace {

std::vector<int> nodes_of(const Graph& graph, const CellRange& cells) {
  std::vector<int> found;
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
    if (const int cell = graph.node(id).cell;
        cell >= cells.first && cell < cells.last && id != graph.input().id)
      found.push_back(id);
  return found;
}

}  // namespace

StageParameters make_parameters(const Graph& graph, const std::vector<CellRange>& cells,
                                const ProcessGroups& groups, c10::ScalarType type, uint64_t seed) {
  StageParameters all;
  for (const auto& [stage, group] : groups.data_parallel())
    all[stage] = std::make_unique<Parameters>(
        graph, nodes_of(graph, cells.at(stage)), type, seed, group.context().backend,
        group.size() > 1 ? group.context().shared_memory : nullptr);
  return all;
}

std::set<std::string> parameters_before(const Graph& graph, int cell) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes())
    if (node.cell < cell)
      for (const Parameter& parameter : node.parameters) names.insert(parameter.name);
  return names;
}

}  // namespace mpi4dl
