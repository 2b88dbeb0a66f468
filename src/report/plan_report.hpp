#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "simulate/planned_run.hpp"

namespace mpi4dl {

/// Remedy is a change of flags that brings every rank under a limit.
struct Remedy {
  std::string flags;  ///< what to give, or to leave out
  std::string price;  ///< what it costs instead
  int64_t bytes = 0;  ///< the most that a rank then needs
  int ranks = 0;      ///< of one replica then
};

/// Says what would bring a run under a limit.
struct Remedies {
  std::vector<Remedy> fitting;  ///< the cheapest first; of each kind the smallest change
  Remedy least;                 ///< the change that needs the least memory of all that were tried
};

/// Says whether every rank of a run has enough memory.
struct MemoryAnswer {
  int64_t limit = 0;  ///< of each rank
  bool fits = true;
  Remedies remedies = {};  ///< where it does not fit
};

/// Holds all that `mpi4dl plan` has found out.
struct PlanReport {
  const std::string& model;
  const Graph& graph;
  const PlannedRun& run;
  Simulation simulation;
  std::vector<RankCost> costs;  ///< of each stage: the most of any rank, for one micro-batch
  std::optional<MemoryAnswer> answer;
};

/// Prints work, messages and memory of the busiest rank of each stage, the schedule, and the
/// answer.
void print(const PlanReport& report);

/// Returns the report for other programs.
nlohmann::ordered_json to_json(const PlanReport& report);

}  // namespace mpi4dl
