#include "import/draft.hpp"

#include <utility>

namespace mpi4dl {

Shapes Draft::input_shapes(const DraftNode& node) const {
  Shapes shapes;
  for (const int input : node.inputs) shapes.push_back(nodes[input].shape);
  return shapes;
}

int64_t Draft::flops(const DraftNode& node) const {
  const Shape& input = node.inputs.empty() ? node.shape : nodes[node.inputs.front()].shape;
  return mpi4dl::flops(node.op, {.input = input,
                                 .result = node.shape,
                                 .inputs = static_cast<int64_t>(node.inputs.size()),
                                 .pixels = positions(node.shape.space)});
}

Draft without_dead_nodes(const Draft& draft) {
  std::vector<bool> live(draft.nodes.size());
  live.front() = live[draft.output] = true;
  for (size_t id = draft.nodes.size(); id-- > 0;)
    if (live[id])
      for (const int input : draft.nodes[id].inputs) live[input] = true;
  Draft kept;
  std::vector<int> place(draft.nodes.size(), -1);
  for (size_t id = 0; id < draft.nodes.size(); ++id) {
    if (!live[id]) continue;
    place[id] = static_cast<int>(kept.nodes.size());
    DraftNode node = draft.nodes[id];
    for (int& input : node.inputs) input = place[input];
    kept.nodes.push_back(std::move(node));
  }
  kept.output = place[draft.output];
  return kept;
}

}  // namespace mpi4dl
