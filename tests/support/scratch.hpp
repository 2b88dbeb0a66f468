#pragma once

#include <optional>
#include <string>

#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "support/scratch_folder.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {

/// Makes a folder for the time of a test, the same on all ranks. Collective.
class Scratch {
 public:
  Scratch() {
    if (world().rank() == 0) folder_.emplace();
    path_ = gather_texts(world(), folder_ ? folder_->path() : "")[0];
  }
  ~Scratch() { barrier(world()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::optional<ScratchFolder> folder_;  // of the first rank
  std::string path_;
};

}  // namespace mpi4dl::testing
