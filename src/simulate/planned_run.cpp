#include "simulate/planned_run.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

int64_t largest_micro_batch(const BatchShape& shape) {
  size_t most = 0;
  for (const MicroBatch& batch : micro_batches(shape, 0)) most = std::max(most, batch.size());
  return static_cast<int64_t>(most);
}

}  // namespace

PlannedRun::PlannedRun(const Graph& graph, Layout layout, std::vector<CellRange> cells,
                       const HaloDesign& halo, const MemoryOptions& options)
    : layout(std::move(layout)),
      cells(std::move(cells)),
      options(options),
      plan(graph, this->layout.stages(), this->cells, largest_micro_batch(options.batch), halo),
      memory(rank_memory(plan, this->layout, options)) {}

std::vector<RankMemory> PlannedRun::busiest() const {
  std::vector<RankMemory> stages;
  for (int stage = 0; stage < static_cast<int>(plan.stages().size()); ++stage) {
    RankMemory& most = stages.emplace_back();
    for (const int rank : layout.stage_ranks(0, 0, stage))
      if (memory[rank].decisive() > most.decisive()) most = memory[rank];
  }
  return stages;
}

const RankMemory& PlannedRun::largest() const {
  return *std::ranges::max_element(memory, {}, &RankMemory::decisive);
}

std::vector<RankCost> PlannedRun::costs() const {
  std::vector<RankCost> stages;
  for (const StagePlan& stage : plan.stages()) {
    RankCost& most = stages.emplace_back();
    for (int rank = 0; rank < stage.grid().size(); ++rank) {
      const RankCost cost = stage.cost(rank);
      most.flops = std::max(most.flops, cost.flops);
      most.redundant_flops = std::max(most.redundant_flops, cost.redundant_flops);
      most.lonely_flops = std::max(most.lonely_flops, cost.lonely_flops);
      most.messages = std::max(most.messages, cost.messages);
      most.elements_sent = std::max(most.elements_sent, cost.elements_sent);
    }
  }
  return stages;
}

Simulation PlannedRun::simulate_step() const {
  const auto stages = layout.stages().size();
  const PipelineShape shape{static_cast<int>(stages), options.batch.parts, options.batch.times};
  std::vector<Schedule> by_rank;
  for (int rank = 0; rank < layout.group_size(); ++rank)
    by_rank.push_back(make_schedule(options.schedule, shape, layout.roles(rank)[0].stage));
  Simulation simulation = simulate(layout, by_rank, std::vector<StageCost>(stages));
  ensure(simulation.complete, "the schedule does not end: {}", simulation.stuck);
  return simulation;
}

}  // namespace mpi4dl
