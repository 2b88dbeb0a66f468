#pragma once

#include <cstdint>
#include <vector>

#include "geometry/box.hpp"

namespace mpi4dl {

/// Route is what one rank exchanges with one peer: a single message that carries all these boxes in
/// order.
struct Route {
  int peer = 0;
  std::vector<Box> boxes;

  int64_t elements() const;
  bool operator==(const Route&) const = default;
};

/// Lists all data movement of one rank in a redistribution, peers in ascending order.
struct Routes {
  std::vector<Route> send;
  std::vector<Route> receive;
  std::vector<Box> local;  ///< needed boxes that this rank owns itself

  bool operator==(const Routes&) const = default;
};

/// Returns the routes of `rank` from boxes owned to boxes needed, both given for every rank. Owned
/// boxes of all ranks are disjoint, and so are the needed boxes of one rank; what several ranks
/// need overlaps, and what nobody owns stays unfilled. One rule for halos, joins, scatters and
/// batch resplits: what I need and another owns, it sends to me.
Routes find_routes(const std::vector<std::vector<Box>>& owned,
                   const std::vector<std::vector<Box>>& needed, int rank);

}  // namespace mpi4dl
