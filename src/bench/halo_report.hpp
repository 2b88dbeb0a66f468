#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/halo_benchmark.hpp"

namespace mpi4dl {

/// Holds what one rank has measured; trivially copyable, so that it can be gathered.
struct HaloRankFigures {
  int64_t height, width, bytes_sent, bytes_received, wrong;
  double min_ms, median_ms, max_ms;
};

/// Gathers the figures of all ranks. Collective over the world.
std::vector<HaloRankFigures> gather_figures(const Communicator& world,
                                            const HaloBenchmark& benchmark, const Timings& timings,
                                            int64_t wrong);

/// Returns the result for other programs. Collective over the world.
nlohmann::ordered_json to_json(const Communicator& world, const HaloBenchmark& benchmark,
                               const HaloOptions& options, const Timings& timings,
                               const std::vector<HaloRankFigures>& ranks);

/// Prints a table of ranks, then the times of `result`. `validated`: values were compared.
void print(const std::vector<HaloRankFigures>& ranks, const nlohmann::ordered_json& result,
           bool validated);

}  // namespace mpi4dl
