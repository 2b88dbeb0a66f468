#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace mpi4dl::baseline {

/// Returns the GFLOP/s of a large matrix product on all threads, or on a device: what it can do at
/// best.
///
/// The product is written as a 1x1 convolution, which oneDNN computes; at::mm asks a BLAS library,
/// and the one that Debian installs by default is a slow reference.
double measure_gemm(c10::ScalarType type, at::Device device);

}  // namespace mpi4dl::baseline
