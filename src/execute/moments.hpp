#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// Holds statistics in float64, a value for each row of samples.
struct Statistics {
  at::Tensor count, mean, variance;  ///< variance is biased: divided by the count
};

/// Returns the statistics of `samples` (rows x samples), merged over all ranks; a rank may have no
/// samples. With a null communicator each rank stands alone. Collective otherwise.
Statistics merged_statistics(const at::Tensor& samples, int64_t rows, const Communicator* ranks);

}  // namespace mpi4dl
