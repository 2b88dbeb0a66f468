#pragma once

#include <cstdint>
#include <vector>

namespace mpi4dl {

/// Returns the order in which an epoch visits the samples of a data set: a shuffle that depends on
/// seed and epoch alone, so it is the same on every rank and for every layout.
std::vector<int64_t> shuffled(int64_t size, uint64_t seed, int64_t epoch);

}  // namespace mpi4dl
