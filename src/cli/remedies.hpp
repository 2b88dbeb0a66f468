#pragma once

#include "cli/planned_run.hpp"
#include "report/plan_report.hpp"

namespace mpi4dl {

/// Plans the run again with one change after the other. Changes on the same ranks come first, ones
/// that alter what is computed after ones that do not, more tiles last.
Remedies find_remedies(const Graph& graph, const TrainingFlags& given, int workers,
                       const PlannedPlace& place, int64_t limit);

}  // namespace mpi4dl
