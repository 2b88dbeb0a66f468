#pragma once

#include <c10/core/Stream.h>

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "support/simulated_device/history.hpp"

namespace mpi4dl::simulated {

/// Counts the streams of a device; the first is its default stream.
inline constexpr int kStreamsOfDevice = 33;

Agent agent_of(const c10::Stream& stream);

/// Names bytes that an operation accesses, and the block they are in.
struct Touch {
  History* history;
  Access access;
  Footprint bytes;
};

/// Knows who has come how far, and refuses what is not ordered.
class Order {
 public:
  static Order& instance();

  /// A stream does something, after all that the host knows of. Throws Refused before it happens.
  Moment run(Agent stream, const std::string& name, std::span<const Touch> touches);
  /// What was done at this moment has also written memory that nobody else could have.
  void wrote(const Moment& when, const std::string& name, const Touch& touch);

  /// Returns what one knows who waits for all that the stream has been given so far.
  Clock after(Agent stream);
  void block(Agent stream, const Clock& clock);
  bool host_knows(const Clock& clock);
  bool host_knows(const Moment& moment);
  /// Throws Refused if memory was freed too early before.
  void host_learns(const Clock& clock);

  /// A stream takes memory, which its own earlier work may still use.
  void takes(Agent stream, History& history, const Footprint& bytes);
  /// The memory of a stream is freed, while others may have been recorded as its users. It is not
  /// thrown from here, where a destructor calls, if the stream or the host does not know who else
  /// used it.
  void frees(Agent stream, const History& history, const std::vector<Agent>& users);

  /// MPI reads or writes device memory from now on, of which the host must know that it is at rest.
  /// Returns the number of the message. Throws Refused.
  int64_t message_begins(const std::string& name, const Touch& touch);
  void message_ends(int64_t message, History& history);

 private:
  Clock& clock_of(Agent agent);
  void launch(Agent stream);
  void throw_what_was_freed();
  void check(const std::string& name, Agent agent, const Clock& clock,
             std::span<const Touch> touches) const;

  std::mutex mutex_;
  std::vector<Clock> clocks_;  // of each agent
  int64_t messages_ = 0;
  std::string freed_too_early_;  // a sentence, until it is thrown
  friend void end_of_program();
};

}  // namespace mpi4dl::simulated
