#include "plan/segments.hpp"

namespace mpi4dl {

Segments::Segments(const StagePlan& plan, const std::vector<CellRange>& cells)
    : list(cells.size()),
      of_node(plan.graph().nodes().size(), -1),
      readers(of_node.size()),
      inside(of_node.size()) {
  std::vector<bool> read_across(of_node.size(), false);
  size_t segment = 0;
  for (const int id : plan.nodes()) {
    const Node& node = plan.graph().node(id);
    while (node.cell >= cells[segment].last) ++segment;
    of_node[id] = static_cast<int>(segment);
    list[segment].nodes.push_back(id);
    for (const int from : node.inputs) {
      const bool extended = plan.reads_extended(from, id);
      const auto count = [extended](Readers& of) {
        ++of.all;
        ++(extended ? of.extended : of.local);
      };
      count(readers[from]);
      if (together(from, id)) {
        count(inside[from]);
      } else if (!read_across[from]) {
        read_across[from] = true;
        list[segment].first_reads.push_back(from);
      }
    }
  }
  for (const int id : plan.outputs()) ++readers[id].all, ++readers[id].local;
}

}  // namespace mpi4dl
