#include "plan/bounds_inference.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

bool contains(const std::vector<Box>& outer, const std::vector<Box>& inner) {
  for (size_t rank = 0; rank < outer.size(); ++rank)
    if (!outer[rank].contains(inner[rank])) return false;
  return true;
}

}  // namespace

void BoundsInference::run() {
  find_nodes();
  check_image();
  find_joined();
  place_owned();
  walk_backwards();
  find_fused_groups();
}

void BoundsInference::find_nodes() {
  const Graph& graph = *plan_.graph_;
  const int count = static_cast<int>(graph.nodes().size());
  consumers_.resize(count);
  plan_.values_.resize(count);
  std::vector<bool> read_later(count, false), read_here(count, false);
  for (int id = 0; id < count; ++id) {
    const bool here = plan_.runs(id);
    if (here) plan_.nodes_.push_back(id);
    for (const int from : graph.node(id).inputs) {
      if (here) consumers_[from].push_back(id);
      if (here && !plan_.runs(from)) read_here[from] = true;
      if (!here && plan_.runs(from)) read_later[from] = true;
    }
  }
  for (int id = 0; id < count; ++id) {
    if (read_here[id]) plan_.inputs_.push_back(id);
    if (plan_.runs(id) && (read_later[id] || id == graph.output())) plan_.outputs_.push_back(id);
  }
}

bool BoundsInference::tiled(int node) const {
  const Extents& space = plan_.graph_->node(node).shape.space;
  if (space.empty()) return false;
  return space[space.size() - 2] >= plan_.grid_.rows && space.back() >= plan_.grid_.cols;
}

template <typename Op>
bool BoundsInference::is(int node) const {
  return std::holds_alternative<Op>(plan_.graph_->node(node).op);
}

bool BoundsInference::sent_on(int node) const {
  return std::ranges::find(plan_.outputs_, node) != plan_.outputs_.end();
}

void BoundsInference::find_joined() {
  for (const auto* list : {&plan_.inputs_, &plan_.nodes_})
    for (const int id : *list) plan_.values_[id].joined = !tiled(id);
}

void BoundsInference::check_image() const {
  const int image = plan_.graph_->input().id;
  const bool read = std::ranges::find(plan_.inputs_, image) != plan_.inputs_.end();
  const Extents& space = plan_.graph_->node(image).shape.space;
  validate(!read || tiled(image),
           "an image of {} is too small for {} rows and {} columns of tiles; use fewer spatial "
           "parts or a larger image",
           to_string(space), plan_.grid_.rows, plan_.grid_.cols);
}

void BoundsInference::place_owned() {
  const Grid& grid = plan_.grid_;
  const Grid by_batch{.batch = grid.batch};
  const auto place = [&](int id) {
    ValuePlan& value = plan_.values_[id];
    const std::vector<int64_t> shape = plan_.full_shape(id);
    for (int rank = 0; rank < grid.size(); ++rank) {
      const Place here = grid.place(rank);
      if (!value.joined) {
        value.owned.push_back(grid.owned(shape, rank));
      } else if (here.row == 0 && here.col == 0) {
        value.owned.push_back(by_batch.owned(shape, here.batch));
      } else {
        value.owned.push_back(Box::none(static_cast<int>(shape.size())));
      }
    }
  };
  for (const int id : plan_.inputs_) place(id);
  for (const int id : plan_.nodes_) place(id);
}

void BoundsInference::walk_backwards() {
  const auto& graph = *plan_.graph_;
  local_need_.resize(consumers_.size());
  exchange_need_.resize(consumers_.size());
  for (const auto* list : {&plan_.inputs_, &plan_.nodes_})
    for (const int id : *list) {
      const Box nothing = Box::none(static_cast<int>(graph.node(id).shape.space.size()) + 2);
      local_need_[id].assign(plan_.grid_.size(), nothing);
      exchange_need_[id].assign(plan_.grid_.size(), nothing);
    }
  plan_.behind_exchange_.resize(consumers_.size());
  for (auto end = plan_.nodes_.end(); end != plan_.nodes_.begin();) {
    auto begin = end - 1;
    while (begin != plan_.nodes_.begin() && plan_.group(begin[-1]) == plan_.group(end[-1])) --begin;
    visit_group({begin, end});
    end = begin;
  }
  for (const int id : plan_.nodes_)
    if (plan_.values_[id].exchanged()) place_padding(id);
  for (const int id : plan_.inputs_) plan_.values_[id].computed = local_need_[id];
}

/// Exchanges before the first operator that reads neighbouring pixels, or at the border of the
/// group, where that takes fewer exchanges: a skip does not pass that operator.
void BoundsInference::visit_group(std::span<const int> nodes) {
  const auto visit_from = [&](bool border) {
    put_behind_exchange(nodes, border);
    for (const int id : std::views::reverse(nodes)) visit(id);
  };
  if (!plan_.design_.fused) return visit_from(false);
  const Needs before = needs_around(nodes);
  const auto try_from = [&](bool border) {
    for (const auto& [id, needs] : before) std::tie(local_need_[id], exchange_need_[id]) = needs;
    visit_from(border);
    return exchanges_for(before);
  };
  const int at_border = try_from(true), inside = try_from(false);
  if (at_border < inside) try_from(true);
}

BoundsInference::Needs BoundsInference::needs_around(std::span<const int> nodes) const {
  Needs needs;
  const auto add = [&](int id) { needs[id] = {local_need_[id], exchange_need_[id]}; };
  for (const int id : nodes) {
    add(id);
    for (const int from : plan_.graph_->node(id).inputs) add(from);
  }
  return needs;
}

void BoundsInference::put_behind_exchange(std::span<const int> nodes, bool all) {
  std::vector<bool>& behind = plan_.behind_exchange_;
  for (const int id : nodes) {
    const Node& node = plan_.graph_->node(id);
    behind[id] = all || !properties(node.op).pointwise;
    for (const int from : node.inputs)
      if (plan_.runs(from) && plan_.group(from) == plan_.group(id) && behind[from] &&
          !plan_.values_[from].joined)
        behind[id] = true;
  }
}

int BoundsInference::exchanges_for(const Needs& values) const {
  return static_cast<int>(std::ranges::count_if(
      values, [this](const auto& value) { return needs_exchange(value.first); }));
}

void BoundsInference::visit(int node) {
  decide_exchange(node);
  const std::vector<int>& inputs = plan_.graph_->node(node).inputs;
  for (size_t input = 0; input < inputs.size(); ++input) {
    const int from = inputs[input];
    const bool exchange = plan_.runs(from) && plan_.exchange_edge(from, node);
    std::vector<Box>& need = exchange ? exchange_need_[from] : local_need_[from];
    for (int rank = 0; rank < plan_.grid_.size(); ++rank)
      need[rank] = hull(need[rank], plan_.needed(node, static_cast<int>(input), rank));
  }
}

void BoundsInference::place_padding(int node) {
  ValuePlan& value = plan_.values_[node];
  value.padded = value.extended;
  value.read_locally = sent_on(node);
  for (const int reader : consumers_[node]) {
    if (!plan_.exchange_edge(node, reader)) value.read_locally = true;
    const Operator& op = plan_.graph_->node(reader).op;
    if (properties(op).window != WindowRule::zeros || !plan_.exchange_edge(node, reader)) continue;
    for (int rank = 0; rank < plan_.grid_.size(); ++rank) {
      const Box& computed = plan_.values_[reader].computed[rank];
      const Box inside = plan_.needed(reader, 0, rank);
      if (inside.empty()) continue;
      Box padded = inside;
      const auto wins = windows(op, inside.axes() - 2);
      for (int axis = 2; axis < inside.axes(); ++axis)
        padded[axis] = wins[axis - 2].need(computed[axis]);
      value.padded[rank] = hull(value.padded[rank], padded);
    }
  }
}

/// Lets one of two operands take their sum into its fused group: rather a batch norm, which a ReLU
/// can follow too, and rather the one that is made last.
void BoundsInference::find_fused_groups() {
  for (const auto* list : {&plan_.inputs_, &plan_.nodes_})
    for (const int id : *list) plan_.values_[id].fused = {id};
  for (const int id : std::views::reverse(plan_.nodes_))
    if (is<BatchNorm>(id)) extend_fused_group(id);
  for (const int id : std::views::reverse(plan_.nodes_))
    if (is<Convolution>(id)) extend_fused_group(id);
  for (const int id : plan_.nodes_) list_reads(id);
}

/// Extends the group of a batch norm or convolution by what may run while its elements are still in
/// registers.
void BoundsInference::extend_fused_group(int first) {
  std::vector<int> group{first};
  while (const std::optional<int> next = next_in_fused_group(group)) group.push_back(*next);
  if (group.size() == 1) return;
  for (const int id : group) plan_.values_[id].fused_into_consumer = id != group.back();
  const int last = group.back();
  const auto& readers = consumers_[last];
  const auto is_convolution = [this](int id) { return is<Convolution>(id); };
  plan_.values_[last].rematerialised = group.size() == 2 && is<Relu>(last) && !sent_on(last) &&
                                       !readers.empty() &&
                                       std::ranges::all_of(readers, is_convolution);
  plan_.values_[last].fused = std::move(group);
}

/// Returns the node that joins a group: the only reader of its last value, if that computes the
/// same pixels in the same cell and is a sum or, behind a batch norm, a ReLU.
std::optional<int> BoundsInference::next_in_fused_group(const std::vector<int>& group) const {
  const int last = group.back();
  if (consumers_[last].size() != 1 || sent_on(last)) return std::nullopt;
  const int reader = consumers_[last][0];
  const ValuePlan &from = plan_.values_[last], &to = plan_.values_[reader];
  const auto& graph = *plan_.graph_;
  if (from.exchanged() || graph.node(reader).cell != graph.node(last).cell ||
      from.computed != to.computed || from.owned != to.owned)
    return std::nullopt;
  const bool norm = is<BatchNorm>(group.front());
  const bool free = to.fused.size() == 1 && !to.fused_into_consumer;
  const bool sum = is<Add>(reader) && graph.node(reader).inputs.size() == 2 && free;
  const bool follows = (group.size() == 1 && sum) || (norm && is<Relu>(reader) && !is<Relu>(last));
  return follows ? std::optional(reader) : std::nullopt;
}

void BoundsInference::list_reads(int node) {
  ValuePlan& value = plan_.values_[node];
  for (size_t i = 0; i < value.fused.size(); ++i) {
    const std::vector<int>& inputs = plan_.graph_->node(value.fused[i]).inputs;
    for (size_t input = 0; input < inputs.size(); ++input)
      if (i == 0 || inputs[input] != value.fused[i - 1])
        value.reads.push_back({inputs[input], value.fused[i], static_cast<int>(input)});
  }
}

std::vector<Box> BoundsInference::computed(int node) const {
  std::vector<Box> boxes = plan_.values_[node].owned;
  for (size_t rank = 0; rank < boxes.size(); ++rank)
    boxes[rank] = hull(boxes[rank], local_need_[node][rank]);
  return boxes;
}

bool BoundsInference::needs_exchange(int node) const {
  return plan_.runs(node) && !contains(computed(node), exchange_need_[node]);
}

void BoundsInference::decide_exchange(int node) {
  ValuePlan& value = plan_.values_[node];
  value.computed = computed(node);
  value.extended.clear();
  if (needs_exchange(node)) value.extended = exchange_need_[node];
}

}  // namespace mpi4dl
