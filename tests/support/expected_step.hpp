#pragma once

#include <string>

namespace mpi4dl::testing {

/// Expects that a step of the model in one of the small files, on tiles of all ranks, is what
/// PyTorch wrote into another one, to 1e-9.
void expect_step_of_pytorch(const std::string& file, const std::string& values);

}  // namespace mpi4dl::testing
