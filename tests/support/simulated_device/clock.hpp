#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

// Who does something, and when: what a GPU orders, told without time. Each agent counts what it
// does; a clock holds how far one knows each of them to have come (Lamport's vector clocks). A
// waits for B by learning B's clock.

namespace mpi4dl::simulated {

/// Does things in an order: the host, or a stream of a device.
using Agent = int;
inline constexpr Agent kHost = 0;
/// Is in nobody's order until it ends: a message that MPI carries.
inline constexpr Agent kMessage = -1;

/// Names one thing that an agent did: its tick-th.
struct Moment {
  Agent agent = kHost;
  int64_t tick = 0;
};

/// Holds how far somebody knows each agent to have come.
class Clock {
 public:
  bool knows(const Moment& moment) const {
    return moment.agent >= 0 && moment.tick <= reached(moment.agent);
  }
  bool knows(const Clock& other) const {
    for (size_t agent = 0; agent < other.ticks_.size(); ++agent)
      if (other.ticks_[agent] > reached(static_cast<Agent>(agent))) return false;
    return true;
  }
  int64_t reached(Agent agent) const {
    return static_cast<size_t>(agent) < ticks_.size() ? ticks_[agent] : 0;
  }

  void learn(const Moment& moment) {
    if (ticks_.size() <= static_cast<size_t>(moment.agent)) ticks_.resize(moment.agent + 1);
    ticks_[moment.agent] = std::max(ticks_[moment.agent], moment.tick);
  }
  void learn(const Clock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t agent = 0; agent < other.ticks_.size(); ++agent)
      ticks_[agent] = std::max(ticks_[agent], other.ticks_[agent]);
  }

 private:
  std::vector<int64_t> ticks_;
};

}  // namespace mpi4dl::simulated
