#pragma once

#include <string>

namespace mpi4dl {

/// Returns the path of one of the small files of tests/data/import, which CMake has unpacked.
std::string import_file(const std::string& name);

}  // namespace mpi4dl
