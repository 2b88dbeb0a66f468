#pragma once

#include <vector>

#include "execute/stage_executor.hpp"
#include "layout/layout.hpp"
#include "layout/micro_batches.hpp"
#include "simulate/schedule.hpp"

namespace mpi4dl {

/// Says what one rank does in an optimizer step: its micro-batches, and in which order they go
/// through.
struct Work {
  std::vector<MicroBatch> batches;
  Schedule schedule;
  int64_t effective_batch = 1;
};

/// Returns the work of a rank of a layout. Throws UsageError where the batch does not fit the
/// layout.
Work share_work(const Layout& layout, const BatchShape& shape, ScheduleKind kind, int rank);

/// Returns the work of one rank alone with the same images and batch norm statistics: all
/// micro-batches one after the other.
Work work_alone(const BatchShape& shape, BatchNormScope batch_norm);

}  // namespace mpi4dl
