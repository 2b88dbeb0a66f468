#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mpi4dl {

class SharedMemory;

/// What this rank has sent to others so far: payload only, whatever way it travelled.
struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
};

/// Seconds that this rank has not computed so far; see IdleSection.
struct IdleTime {
  double communication = 0;  ///< in exchanges and reductions, until they were finished
  double waiting = 0;        ///< until another stage had made something, or ended its step
  bool in_section = false;
};

/// Memory that another rank of the node reads, until `taken()`.
struct Enclosed {
  std::shared_ptr<void> memory;
  std::function<bool()> taken;
};

/// What every communicator of a session shares: how to wait and how to carry messages.
struct CommContext {
  double timeout_seconds = 300;                  ///< a longer wait ends the job
  int64_t max_message_bytes = int64_t{1} << 30;  ///< larger messages travel in pieces
  bool device_aware = false;                     ///< MPI reads and writes device memory itself
  bool stage_through_host = false;  ///< copy every message through host memory, CPU tensors too
  bool oversubscribed = false;      ///< more ranks than cores: yield early when waiting
  int world_rank = 0;
  std::shared_ptr<SharedMemory> shared_memory;  ///< null where the node has none
  /// Not in the shared memory, which it keeps alive.
  std::vector<Enclosed> enclosed;
  Traffic sent;
  mutable IdleTime idle;           ///< waits count in it, and change nothing else
  std::string doing = "starting";  ///< for the sentence of a failing rank

  /// Lets go of memory that its readers are done with.
  void forget_taken() {
    std::erase_if(enclosed, [](const Enclosed& some) { return some.taken(); });
  }
};

}  // namespace mpi4dl
