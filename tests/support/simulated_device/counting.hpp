#pragma once

#include <atomic>
#include <cstdint>

namespace mpi4dl::simulated {

/// Holds the counters of simulated_device.hpp that only grow, as threads count them.
struct Counting {
  std::atomic<int64_t> operators, copies_in, copies_out, bytes_in, bytes_out, host_waits,
      pinned_bytes, bytes_on, gaps;
};

Counting& counting();

}  // namespace mpi4dl::simulated
