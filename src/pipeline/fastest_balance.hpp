#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "pipeline/schedule.hpp"
#include "plan/balance.hpp"

namespace mpi4dl {

/// Cells of each stage such that an optimizer step ends soonest, as the simulator plays it, if
/// every rank computes equally fast. Where micro-batches keep all stages busy, that is an even
/// share of work; where stages wait for each other, those with many ranks get more.
std::vector<CellRange> fastest_balance(const Graph& graph, const Layout& layout, ScheduleKind kind,
                                       const PipelineShape& shape);

}  // namespace mpi4dl
