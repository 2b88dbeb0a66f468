#include "plan/pipeline_plan.hpp"

#include <map>
#include <set>

#include "base/error.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {
namespace {

/// Throws where nodes of several stages share a trained parameter: its gradient is summed up within
/// one. Frozen ones have none, so each stage holds its own copy.
void check_shared_parameters(const Graph& graph, const std::vector<CellRange>& cells) {
  const auto stage_of = [&](int cell) {
    size_t stage = 0;
    while (stage + 1 < cells.size() && cell >= cells[stage].last) ++stage;
    return stage;
  };
  std::map<std::string, int> first;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters) {
      if (!parameter.trained()) continue;
      const int cell = first.emplace(parameter.name, node.cell).first->second;
      validate(
          stage_of(cell) == stage_of(node.cell),
          "cells {} and {} share parameter {}, but are in stages {} and {}; balance the cells so "
          "that they are in one stage",
          graph.cells()[cell], graph.cells()[node.cell], parameter.name, stage_of(cell),
          stage_of(node.cell));
    }
}

}  // namespace

PipelinePlan::PipelinePlan(const Graph& graph, const std::vector<Grid>& grids,
                           const std::vector<CellRange>& cells, int64_t micro_batch,
                           const HaloDesign& design)
    : micro_batch_(micro_batch) {
  check_shared_parameters(graph, cells);
  for (size_t stage = 0; stage < grids.size(); ++stage)
    stages_.emplace_back(graph, grids[stage], micro_batch, design, cells[stage]);
  for (int to = 0; to < static_cast<int>(stages_.size()); ++to)
    for (const int value : stages_[to].inputs())
      for (int from = 0; from < to; ++from)
        if (stages_[from].runs(value)) transfers_.push_back({value, from, to});
}

PipelinePlan::Cost PipelinePlan::cost() const {
  Cost all;
  for (const StagePlan& stage : stages_)
    for (int rank = 0; rank < stage.grid().size(); ++rank) {
      const RankCost cost = stage.cost(rank);
      all.messages += cost.messages;
      all.elements += cost.elements_sent;
    }
  for (const Transfer& transfer : transfers_) {
    const auto from = owned(transfer), to = needed(transfer);
    for (int rank = 0; rank < static_cast<int>(from.size()); ++rank)
      for (const Route& route : find_routes(from, to, rank).send) {
        all.messages += 2;  // there, and back with the gradient
        all.elements += 2 * route.elements();
      }
  }
  return all;
}

std::vector<std::vector<Box>> PipelinePlan::by_position(int stage,
                                                        const std::vector<Box>& boxes) const {
  std::vector<std::vector<Box>> all;
  for (int s = 0; s < static_cast<int>(stages_.size()); ++s)
    for (int tile = 0; tile < stages_[s].grid().size(); ++tile) {
      auto& here = all.emplace_back();
      if (s == stage && !boxes[tile].empty()) here.push_back(boxes[tile]);
    }
  return all;
}

std::vector<std::vector<Box>> PipelinePlan::owned(const Transfer& transfer) const {
  return by_position(transfer.from, stages_[transfer.from].value(transfer.value).owned);
}

std::vector<std::vector<Box>> PipelinePlan::needed(const Transfer& transfer) const {
  return by_position(transfer.to, stages_[transfer.to].value(transfer.value).computed);
}

std::vector<PipelinePlan> plan_sizes(const Graph& graph, const std::vector<Grid>& grids,
                                     const std::vector<CellRange>& cells,
                                     const std::vector<MicroBatch>& batches,
                                     const HaloDesign& design) {
  std::set<int64_t> sizes;
  for (const MicroBatch& batch : batches) sizes.insert(static_cast<int64_t>(batch.size()));
  std::vector<PipelinePlan> plans;
  for (const int64_t size : sizes) plans.emplace_back(graph, grids, cells, size, design);
  return plans;
}

}  // namespace mpi4dl
