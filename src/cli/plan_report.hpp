#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/memory_answer.hpp"
#include "pipeline/simulator.hpp"

namespace mpi4dl {

/// Whether every rank of a run has enough memory.
struct MemoryAnswer {
  int64_t limit = 0;  ///< of each rank
  bool fits = true;
  Remedies remedies = {};  ///< where it does not fit
};

/// All that `mpi4dl plan` has found out.
struct PlanReport {
  const std::string& model;
  const Graph& graph;
  const PlannedRun& run;
  const Simulation& played;
  std::vector<RankCost> costs;  ///< of each stage: the most of any rank, for one micro-batch
  std::optional<MemoryAnswer> answer;
};

/// Work, messages and memory of the busiest rank of each stage, the schedule, and the answer.
void print(const PlanReport& report);

/// The same for other programs.
nlohmann::ordered_json to_json(const PlanReport& report);

}  // namespace mpi4dl
