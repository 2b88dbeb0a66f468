#include "plan/stage_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
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

/// Axis is one axis of an operator whose input has this length along it.
struct Axis {
  const Operator& op;
  int number;
  int64_t length;
};

/// Returns which of these outputs read some of these inputs.
Interval reached(const Axis& axis, const Interval& inputs, const Interval& outputs) {
  Interval all;
  for (int64_t output = outputs.begin; output < outputs.end; ++output) {
    const Interval reads = needed_rows(axis.op, {axis.number, {output, output + 1}, axis.length});
    if (!intersect(reads, inputs).empty()) all = hull(all, {output, output + 1});
  }
  return all;
}

/// Counts the elements that both have.
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
  validate(design.fused_layers >= 1, "{} fused layers are too few; use at least 1",
           design.fused_layers);
  BoundsInference(*this).run();
}

StagePlan::StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design)
    : StagePlan(graph, grid, batch, design, {0, static_cast<int>(graph.cells().size())}) {}

bool StagePlan::runs(int node) const {
  const int cell = graph_->node(node).cell;
  return !is<Input>(graph_->node(node).op) && cell >= cells_.first && cell < cells_.last;
}

bool StagePlan::pools(int node) const {
  return properties(graph_->node(node).op).pooling != Pooling::none && values_[node].joined;
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
  return values_[node].fused.size() > 1 && is<Relu>(graph_->node(node).op);
}

bool StagePlan::rematerialised(int node, int rank) const {
  const ValuePlan& value = values_[node];
  return value.rematerialised && !value.computed[rank].empty() &&
         (!value.exchanged() || value.computed_in_halo_buffer(rank));
}

/// Returns whether this edge may have an exchange; it has one if the consumer needs more than is
/// there.
bool StagePlan::exchange_edge(int producer, int consumer) const {
  if (pools(consumer)) return false;
  // Between one place and all tiles: a join, or a broadcast. Nobody computes it once more instead.
  if (values_[consumer].joined || values_[producer].joined)
    return values_[consumer].joined != values_[producer].joined;
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
  if (pools(node)) return values_[from].owned[rank];
  const Box& outputs = values_[node].computed[rank];
  if (outputs.empty()) return Box::none(whole.axes());
  Box box = whole;
  box[0] = outputs[0];
  if (!to.shape.spatial() || whole.axes() == 2) return box;  // all of it
  for (int axis = 0; axis < outputs.axes() - 2; ++axis) {
    const int64_t length = whole[axis + 2].length();
    const Interval rows = needed_rows(to.op, {axis, outputs[axis + 2], length});
    // Clamped, not intersected: an output that sees padding only still knows on which side.
    box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),
                     std::clamp<int64_t>(rows.end, 0, length)};
  }
  return box;
}

/// Each tile pools the pixels that it owns, of the images that it has a part of.
int64_t StagePlan::own_flops(int node, int rank) const {
  const Node& its = graph_->node(node);
  if (!pools(node)) return flops(*graph_, its, pixels(values_[node].owned[rank]));
  const Extents& space = graph_->node(its.inputs[0]).shape.space;
  const double share = static_cast<double>(pixels(values_[its.inputs[0]].owned[rank])) /
                       static_cast<double>(batch_ * positions(space));
  const int64_t all = flops(*graph_, its, batch_ * positions(its.shape.space));
  return std::llround(static_cast<double>(all) * share);
}

RankCost StagePlan::cost(int rank) const {
  RankCost cost;
  const auto count = [&](int64_t elements) {
    cost.messages += elements > 0 ? 1 : 0;
    cost.elements_sent += elements;
  };
  const auto count_there = [&](const std::vector<Box>& owned, const std::vector<Box>& needed) {
    for (int peer = 0; peer < grid_.size(); ++peer)
      if (peer != rank) count(overlap(owned[rank], needed[peer]));
  };
  const auto count_back = [&](const std::vector<Box>& owned, const std::vector<Box>& needed) {
    for (int peer = 0; peer < grid_.size(); ++peer)
      if (peer != rank) count(overlap(owned[peer], needed[rank]));
  };
  for (const int id : nodes_) {
    const Node& node = graph_->node(id);
    const ValuePlan& value = values_[id];
    const int64_t own = own_flops(id, rank);
    const int64_t all = pools(id) ? own : flops(*graph_, node, pixels(value.computed[rank]));
    cost.flops += all;
    cost.redundant_flops += all - own;
    const bool alone = pools(id) ? values_[node.inputs[0]].joined : value.joined;
    if (alone && node.shape.spatial()) cost.lonely_flops += all;
    if (value.exchanged()) {
      count_there(value.owned, value.extended);
      count_back(value.owned, value.extended);
    }
    if (pools(id)) {
      const std::vector<Box> parts = pooling_parts(*this, id);
      if (properties(node.op).pooling == Pooling::messages) count_back(value.owned, parts);
      count_there(value.owned, parts);
    }
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
  const Node& pooling = plan.graph().node(node);
  const Extents& space = plan.graph().node(pooling.inputs[0]).shape.space;
  const Box whole = Box::whole(plan.full_shape(node));
  std::vector<Box> parts;
  for (const Box& held : plan.value(pooling.inputs[0]).owned) {
    Box part = whole;
    part[0] = held[0];
    for (int axis = 0; axis < whole.axes() - 2; ++axis)
      part[axis + 2] = reached({pooling.op, axis, space[axis]}, held[axis + 2], whole[axis + 2]);
    parts.push_back(held.empty() ? Box::none(whole.axes()) : part);
  }
  return parts;
}

}  // namespace mpi4dl
