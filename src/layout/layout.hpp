#pragma once

#include <string>
#include <vector>

#include "geometry/grid.hpp"

namespace mpi4dl {

/// Holds the flags that say how a model is spread over ranks, in the vocabulary of MPI4DL.
struct ParallelOptions {
  /// Names a benchmark of MPI4DL to run with its defaults: layer, spatial, gems or gems-spatial.
  /// Empty: what the other flags say.
  std::string parallelism = {};
  int split_size = 0;     ///< stages; 0: 1 on one rank, 2 where there are spatial parts
  int spatial_size = -1;  ///< leading stages that are spatial; -1: 1 if there are parts
  std::vector<int> spatial_parts =
      {};  ///< tiles of each spatial stage: one number for all, or one each
  std::string slice_method = "square";
  int local_dp = 1;         ///< ranks that share the batch of each later stage
  std::string stages = {};  ///< the general form, such as "2x2,2x1,b:2,1"; overrides the above
  bool gems = false;
};

/// Returns options in which `parallelism` says what the flags leave open. Throws UsageError where a
/// flag asks for what that kind of run does not have; a flag that says what is the default anyway
/// may stay.
ParallelOptions with_defaults(ParallelOptions options);

/// Says what a rank is in one direction.
struct Role {
  int replica = 0;
  int direction = 0;
  int stage = 0;
  int tile = 0;  ///< its place in the stage's grid

  bool operator==(const Role&) const = default;
};

/// Says who does what: replicas of a model-parallel group, whose ranks are the tiles of stage 0,
/// then those of stage 1, and so on. With GEMS, direction 1 uses the same ranks mirrored.
///
///     stages 2x2, 1 on 5 ranks    direction 0:  [0 1 2 3] [4]
///                                 direction 1:  [4 3 2 1] [0]
class Layout {
 public:
  /// Throws UsageError, with the arithmetic and the right -np, where the ranks do not fit.
  Layout(const ParallelOptions& options, int ranks);
  /// Does likewise. `way_out`: what else a user may do, for the end of that sentence.
  Layout(int ranks, std::vector<Grid> stages, bool gems = false, const std::string& way_out = "");

  const std::vector<Grid>& stages() const { return stages_; }
  int group_size() const { return group_size_; }
  int replicas() const { return replicas_; }
  int directions() const { return directions_; }
  /// Returns whether a stage cuts its images.
  bool has_tiles() const;

  /// Returns the roles of a rank, one per direction.
  std::vector<Role> roles(int rank) const;
  /// Returns the rank with this role.
  int rank(const Role& role) const;
  /// Returns all ranks of a stage, in the order of its grid.
  std::vector<int> stage_ranks(int replica, int direction, int stage) const;

 private:
  std::vector<Grid> stages_;
  std::vector<int> first_position_;  // of each stage in the group
  int group_size_ = 0;
  int replicas_ = 1;
  int directions_ = 1;
};

}  // namespace mpi4dl
