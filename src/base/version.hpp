#pragma once

namespace mpi4dl {

constexpr const char* kVersion = "0.1.0";

}  // namespace mpi4dl
