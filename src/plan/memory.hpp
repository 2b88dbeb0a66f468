#pragma once

#include <cstdint>
#include <vector>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Counts the bytes that activations and their gradients take on a rank: stage inputs, what
/// backward keeps, halos, padding and temporaries. Parameters and their gradients are not counted.
struct ActivationBytes {
  int64_t kept = 0;  ///< of one micro-batch between its forward and its backward
  int64_t peak = 0;  ///< the most at any moment of one micro-batch
  /// Counts what allocators hold that keep what is freed, one for memory that other ranks can read
  /// (halos) and one for the rest: the worst moments of both, in the sizes that they give out.
  int64_t reserved = 0;
  /// Counts values from another stage that are expected ahead, their gradients on the way back, and
  /// what a later stage was sent but has not fetched yet.
  int64_t in_transit = 0;

  /// Returns the most while `live` micro-batches are between forward and backward at once.
  int64_t with_live(int live) const { return peak + (live - 1) * kept + in_transit; }
};

/// Names whose operators compute, which decides what memory they need beside their results.
enum class Kernels {
  own,      ///< ours, on the cpu
  composed  ///< libtorch's, as on a device
};

/// Simulates a micro-batch in the order and with the storage of execute/stage_executor. Between the
/// runs of cells `recomputed` alone something is kept; where there are none, everything is.
ActivationBytes activation_bytes(const StagePlan& plan, int rank, int64_t element_size,
                                 const std::vector<CellRange>& recomputed = {},
                                 Kernels kernels = Kernels::own);

/// Returns what is kept after the forward of each cell of the stage, for backward and for later
/// cells.
std::vector<int64_t> kept_by_cell(const StagePlan& plan, int rank, int64_t element_size,
                                  const std::vector<CellRange>& recomputed = {});

}  // namespace mpi4dl
