#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mpi4dl {

class Backend;
class SharedMemory;

/// Counts what this rank has sent to others so far: payload only, whatever way it travelled.
struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
};

/// Counts the seconds that this rank has not computed so far; see IdleSection.
struct IdleTime {
  double communication = 0;  ///< in exchanges and reductions, until they were finished
  double waiting = 0;        ///< until another stage had made something, or ended its step
  bool in_section = false;
};

/// Keeps memory alive that another rank of the node reads, until that rank has acknowledged it.
struct KeepAlive {
  std::shared_ptr<void> memory;
  std::function<bool()> acknowledged;
};

/// Holds messages of a device that are sent once it has packed them. Messages of one tag arrive in
/// the order in which they are sent, so this is done in the order in which the packing began.
class Unsent {
 public:
  virtual ~Unsent() = default;
  /// Waits until they are packed, and sends them.
  virtual void send() = 0;
};

/// Holds what every communicator of a session shares: how to wait, how to carry messages, and on
/// which device their tensors are.
struct CommContext {
  double timeout_seconds = 300;                  ///< a longer wait ends the job
  int64_t max_message_bytes = int64_t{1} << 30;  ///< larger messages travel in pieces
  bool device_aware = false;                     ///< MPI exchanges halos in device memory itself
  bool stage_through_host = false;  ///< copy every message through host memory, CPU tensors too
  bool oversubscribed = false;      ///< more ranks than cores: yield early when waiting
  int world_rank = 0;
  std::shared_ptr<const Backend> backend;       ///< of this rank's tensors; never null
  std::shared_ptr<SharedMemory> shared_memory;  ///< null where the node has none
  /// These entries live outside the shared memory, because they keep it alive.
  std::vector<KeepAlive> kept_alive;
  std::deque<Unsent*> unsent;  ///< each removes itself when it ends
  Traffic sent;
  mutable IdleTime idle;           ///< waits count in it, and change nothing else
  std::string doing = "starting";  ///< for the sentence of a failing rank

  /// Releases memory that its readers have acknowledged.
  void release_acknowledged() {
    std::erase_if(kept_alive, [](const KeepAlive& kept) { return kept.acknowledged(); });
  }
};

}  // namespace mpi4dl
