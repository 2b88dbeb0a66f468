#pragma once

#include "backend/backend.hpp"
#include "exchange/redistribution.hpp"

namespace mpi4dl {

/// How a redistribution is under way depends on whose memory the patches are in. What each call
/// does is said at Flight.
class Redistribution::Flight::State {
 public:
  State() = default;
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual void receive() = 0;
  virtual bool received() const = 0;
  virtual bool sent() = 0;
  virtual void finish() = 0;
};

/// Says what travels in a flight, and where to.
struct Journey {
  Combine how;
  const Link& link;
  const std::vector<Route>& sends;
  const std::vector<Route>& receives;
  const std::vector<Box>& local;  ///< boxes that stay on this rank
  const Patch& from;
  const Patch& to;
};

}  // namespace mpi4dl
