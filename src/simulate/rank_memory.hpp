#pragma once

#include <cstdint>
#include <vector>

#include "layout/layout.hpp"
#include "plan/memory.hpp"
#include "plan/pipeline_plan.hpp"
#include "simulate/schedule.hpp"

namespace mpi4dl {

/// Holds what decides, beside the plan of its stages, how much memory a training run takes.
struct MemoryOptions {
  BatchShape batch = {};
  ScheduleKind schedule = ScheduleKind::gpipe;
  bool recompute = false;
  int64_t value_bytes = 4;   ///< of an element of activations and parameters
  int64_t sum_bytes = 4;     ///< of an element of parameter gradients and of optimizer state
  int optimizer_states = 1;  ///< values that the optimizer keeps of each parameter
  int boxes_ahead = 0;       ///< boxes of pixels that wait to be used, each of one image
  Kernels kernels = Kernels::own;
  bool on_device = false;  ///< each rank computes on a device with memory of its own
};

/// Adds up all the memory that a rank needs while it trains, in bytes. Of a rank with a device all
/// is there but what is said to be on the host.
struct RankMemory {
  int64_t parameters = 0;   ///< values, running statistics, and the wide copy of narrow values
  int64_t gradients = 0;    ///< of the parameters, and sums of statistics
  int64_t optimizer = 0;    ///< momentum, or Adam's two moments
  int64_t activations = 0;  ///< with their gradients and halos, of all micro-batches alive at once
  int64_t pixels = 0;       ///< read ahead; on the host
  int64_t staging = 0;      ///< what a device's halos, sums and first parameters pass; on the host
  int64_t unused = 0;       ///< what allocators hold beyond activations at their worst moment
  int64_t process = 0;      ///< the program itself: kProcessBytes; on the host
  bool has_device = false;

  int64_t total() const {
    return parameters + gradients + optimizer + activations + unused + on_host();
  }
  int64_t on_host() const { return pixels + staging + process; }
  int64_t on_device() const { return total() - on_host(); }
  /// Counts what decides whether a run fits: the device's memory where there is one.
  int64_t decisive() const { return has_device ? on_device() : total(); }
};

/// This is what a rank holds that trains next to nothing: code, libtorch, MPI and their tables.
/// Measured with libtorch 1.13 and Open MPI 4.1 as 176 MiB (ResNet-8) to 184 MiB (ResNet-110).
inline constexpr int64_t kProcessBytes = int64_t{184} << 20;

/// Returns the memory of each rank of a replica, by arithmetic alone.
std::vector<RankMemory> rank_memory(const PipelinePlan& plan, const Layout& layout,
                                    const MemoryOptions& options);

}  // namespace mpi4dl
