#pragma once

#include <map>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "layout/layout.hpp"

namespace mpi4dl {

/// Whom this rank works with in one direction.
struct Crew {
  Role role;
  Communicator group;     ///< all stages of the replica, by position
  Communicator stage;     ///< the tiles of this rank's stage
  Communicator replicas;  ///< the same stage in all replicas
};

/// All communicators of this rank.
class Team {
 public:
  /// Collective over the world.
  Team(const Layout& layout, const Communicator& world);

  const std::vector<Crew>& crews() const { return crews_; }  ///< by direction
  /// Everybody who holds the parameters of a stage: tiles, replicas and directions. This rank
  /// holds those of one stage, or of two with GEMS.
  const std::map<int, Communicator>& holders() const { return holders_; }

 private:
  std::vector<Crew> crews_;
  std::map<int, Communicator> holders_;
};

}  // namespace mpi4dl
