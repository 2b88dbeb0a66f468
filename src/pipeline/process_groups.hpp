#pragma once

#include <map>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "layout/layout.hpp"

namespace mpi4dl {

/// Holds the process groups in which this rank works in one direction.
struct StageGroups {
  Role role;
  Communicator pipeline;  ///< all stages of the replica, by position
  Communicator stage;     ///< the tiles of this rank's stage
  Communicator replicas;  ///< this stage in all replicas
};

/// Makes and holds all communicators of this rank.
class ProcessGroups {
 public:
  /// The constructor is collective over the world.
  ProcessGroups(const Layout& layout, const Communicator& world);

  /// There is an entry for each direction.
  const std::vector<StageGroups>& directions() const { return directions_; }
  /// The data-parallel group of a stage is everybody who holds its parameters: tiles, replicas and
  /// directions. This rank holds those of one stage, or of two with GEMS.
  const std::map<int, Communicator>& data_parallel() const { return data_parallel_; }

 private:
  std::vector<StageGroups> directions_;
  std::map<int, Communicator> data_parallel_;  // by stage
};

}  // namespace mpi4dl
