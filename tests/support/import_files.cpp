#include "support/import_files.hpp"

namespace mpi4dl {

std::string import_file(const std::string& name) {
  return std::string(MPI4DL_IMPORT_FILES) + '/' + name;
}

}  // namespace mpi4dl
