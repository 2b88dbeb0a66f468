#include "plan/stage_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/geometry.hpp"
#include "plan/bounds_inference.hpp"

namespace mpi4dl {
namespace {

template <typename T>
bool is(const Operator& op) {
  return std::holds_alternative<T>(op);
}

int64_t pixels(const Box& box) {
  int64_t product = box[0].length();
  for (int axis = 2; axis < box.axes(); ++axis) product *= box[axis].length();
  return product;
}

/// How many elements both have.
int64_t overlap(const Box& a, const Box& b) {
  int64_t elements = 1;
  for (int axis = a.axes() - 1; axis >= 0 && elements > 0; --axis)
    elements *= std::max<int64_t>(
        0, std::min(a[axis].end, b[axis].end) - std::max(a[axis].begin, b[axis].begin));
  return elements;
}

}  // namespace

StagePlan::StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design,
                     CellRange cells)
    : graph_(&graph), grid_(grid), batch_(batch), design_(design), cells_(cells) {
  validate(grid.batch <= batch, "{} images cannot be shared by {} batch parts; use a larger batch",
           batch, grid.batch);
  validate(design.fused_layers >= 1, "--fused-layers {} must be at least 1", design.fused_layers);
  BoundsInference(*this).run();
}

StagePlan::StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design)
    : StagePlan(graph, grid, batch, design, {0, static_cast<int>(graph.cells().size())}) {}

bool StagePlan::runs(int node) const {
  const int cell = graph_->node(node).cell;
  return !is<Input>(graph_->node(node).op) && cell >= cells_.first && cell < cells_.last;
}

std::vector<int64_t> StagePlan::full_shape(int node) const {
  const Shape& shape = graph_->node(node).shape;
  std::vector<int64_t> full{batch_, shape.channels};
  full.insert(full.end(), shape.space.begin(), shape.space.end());
  return full;
}

bool StagePlan::reads_extended(int producer, int consumer) const {
  return values_[producer].exchanged() && exchange_edge(producer, consumer);
}

bool StagePlan::ends_with_relu(int node) const {
  return values_[node].pass.size() > 1 && is<Relu>(graph_->node(node).op);
}

bool StagePlan::remade(int node, int rank) const {
  const ValuePlan& value = values_[node];
  return value.remade && !value.computed[rank].empty() &&
         (!value.exchanged() || value.computed_in_room(rank));
}

/// Whether this edge may have an exchange; it has one if the consumer needs more than is there.
bool StagePlan::exchange_edge(int producer, int consumer) const {
  const Node& to = graph_->node(consumer);
  if (is<GlobalAvgPool>(to.op)) return false;
  if (values_[consumer].joined) return !values_[producer].joined;
  const bool together = group(producer) == group(consumer) && behind_exchange_[producer];
  return behind_exchange_[consumer] && !together;
}

int StagePlan::group(int node) const {
  return design_.fused ? (graph_->node(node).cell - cells_.first) / design_.fused_layers : node;
}

Box StagePlan::needed(int node, int input, int rank) const {
  const Node& to = graph_->node(node);
  const int from = to.inputs[input];
  const Box whole = Box::whole(full_shape(from));
  if (is<GlobalAvgPool>(to.op)) return values_[from].owned[rank];
  const Box& outputs = values_[node].computed[rank];
  if (outputs.empty()) return Box::none(whole.axes());
  Box box = whole;
  box[0] = outputs[0];
  const int spatial_axes = outputs.axes() - 2;
  if (is<Flatten>(to.op) || is<Linear>(to.op)) return box;
  for (int axis = 0; axis < spatial_axes; ++axis) {
    const int64_t length = whole[axis + 2].length();
    const Interval rows = needed_rows(to.op, axis, spatial_axes, outputs[axis + 2], length);
    // Clamped, not intersected: an output that sees padding only still knows on which side.
    box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),
                     std::clamp<int64_t>(rows.end, 0, length)};
  }
  return box;
}

RankCost StagePlan::cost(int rank) const {
  RankCost cost;
  const auto count = [&](int64_t elements) {
    cost.messages += elements > 0 ? 1 : 0;
    cost.elements_sent += elements;
  };
  // There, and back with the gradient.
  const auto count_routes = [&](const std::vector<Box>& owned, const std::vector<Box>& needed) {
    for (int peer = 0; peer < grid_.size(); ++peer)
      if (peer != rank)
        count(overlap(owned[rank], needed[peer])), count(overlap(owned[peer], needed[rank]));
  };
  for (const int id : nodes_) {
    const Node& node = graph_->node(id);
    const ValuePlan& value = values_[id];
    const int64_t all = flops(*graph_, node, pixels(value.computed[rank]));
    cost.flops += all;
    cost.redundant_flops += all - flops(*graph_, node, pixels(value.owned[rank]));
    if (value.exchanged()) count_routes(value.owned, value.extended);
    if (is<GlobalAvgPool>(node.op)) count_routes(value.owned, pooling_parts(*this, id));
  }
  return cost;
}

std::vector<std::vector<Box>> one_box_each(const std::vector<Box>& boxes) {
  std::vector<std::vector<Box>> lists;
  lists.reserve(boxes.size());
  for (const Box& box : boxes) lists.push_back(box.empty() ? std::vector<Box>{} : std::vector{box});
  return lists;
}

std::vector<Box> pooling_parts(const StagePlan& plan, int node) {
  const ValuePlan& input = plan.value(plan.graph().node(node).inputs[0]);
  const Box whole = Box::whole(plan.full_shape(node));
  std::vector<Box> parts;
  for (const Box& held : input.owned) {
    Box part = whole;
    part[0] = held[0];
    parts.push_back(held.empty() ? Box::none(whole.axes()) : part);
  }
  return parts;
}

}  // namespace mpi4dl
