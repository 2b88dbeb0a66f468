#pragma once

#include <string>

namespace mpi4dl {

/// Says which libtorch runs: its version, whose it is, and the folder it was loaded from.
std::string describe_libtorch();

/// Says which CUDA this libtorch was built with, if any, and how many devices it finds.
std::string describe_cuda();

}  // namespace mpi4dl
