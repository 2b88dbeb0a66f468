#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "comm/agreement.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {

/// A folder for the time of a test, the same on all ranks. Collective.
class Scratch {
 public:
  Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "mpi4dl-XXXXXX";
    if (world().rank() == 0 && mkdtemp(name.data()) == nullptr) name.clear();
    path_ = gather_texts(world(), name)[0];
  }
  ~Scratch() {
    world().barrier();
    if (world().rank() == 0) std::filesystem::remove_all(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace mpi4dl::testing
