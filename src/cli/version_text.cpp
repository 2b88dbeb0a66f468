#include "cli/version_text.hpp"

#include <fmt/format.h>

#include "base/instruction_set.hpp"
#include "base/version.hpp"
#include "comm/library_version.hpp"
#include "memory/libtorch_build.hpp"

namespace mpi4dl {

std::string version_text() {
  return fmt::format(
      "mpi4dl {}\n"
      "  libtorch         {}\n"
      "  CUDA             {}\n"
      "  MPI              {}\n"
      "  instruction set  {}",
      kVersion, describe_libtorch(), describe_cuda(), mpi_library_version(),
      name_of(instruction_set()));
}

}  // namespace mpi4dl
