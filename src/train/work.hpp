#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "layout/micro_batches.hpp"
#include "ops/stage_runner.hpp"
#include "pipeline/schedule.hpp"

namespace mpi4dl {

/// What one rank does in an optimizer step: its micro-batches, and in which order they go through.
struct Work {
  std::vector<MicroBatch> batches;
  Schedule schedule;
  int64_t effective_batch = 1;
};

/// The work of a rank of a layout. Throws UsageError where the batch does not fit the layout.
Work share_work(const Layout& layout, const BatchShape& shape, ScheduleKind kind, int rank);

/// The same images with the same batch norm statistics on one rank alone: all micro-batches one
/// after the other.
Work work_alone(const BatchShape& shape, BatchNormScope batch_norm);

}  // namespace mpi4dl
