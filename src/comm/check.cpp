#include "comm/check.hpp"

#include <mpi.h>

#include <array>
#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace mpi4dl {

void mpi(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(
      fmt::format("{} (in {}, {}:{})", std::string(text.data(), length), where.function_name(),
                  std::filesystem::path(where.file_name()).filename().string(), where.line()));
}

}  // namespace mpi4dl
