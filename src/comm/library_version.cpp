#include "comm/library_version.hpp"

#include <mpi.h>

#include <array>

#include "comm/check.hpp"

namespace mpi4dl {

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  mpi(MPI_Get_library_version(text.data(), &length));
  const std::string all(text.data(), static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));  // who built it, and when, follows
}

}  // namespace mpi4dl
