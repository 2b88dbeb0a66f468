#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "plan/balance.hpp"
#include "simulate/schedule.hpp"

namespace mpi4dl {

/// Returns the cells of each stage with which a simulated optimizer step ends soonest, if every
/// rank computes equally fast. Where micro-batches keep all stages busy, that is an even share of
/// work; where stages wait for each other, those with many ranks get more.
std::vector<CellRange> fastest_balance(const Graph& graph, const Layout& layout, ScheduleKind kind,
                                       const PipelineShape& shape);

}  // namespace mpi4dl
