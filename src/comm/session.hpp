#pragma once

#include <exception>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace mpi4dl {

struct SessionOptions {
  double timeout_seconds = 300;                  ///< a longer wait ends the job
  int64_t max_message_bytes = int64_t{1} << 30;  ///< larger messages travel in pieces
  bool stage_through_host = false;               ///< as if MPI could not read the tensors' memory
  bool shared_memory = true;      ///< ranks of a node read each other's exchange buffers
  std::string backend = "auto";   ///< cpu or composed; auto: cpu on the host, composed elsewhere
  at::Device device = at::kCPU;   ///< on which tensors are
  bool device_aware_mpi = false;  ///< MPI reads and writes the device's memory itself
};

/// Runs MPI from beginning to end: under mpirun as one of many ranks, without it as the only one.
class Session {
 public:
  explicit Session(const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Communicator& world() const { return *world_; }
  bool first() const { return world_->rank() == 0; }
  /// Counts the threads this rank computes with: the cores that it may use, divided by the ranks
  /// that share them; OMP_NUM_THREADS overrides.
  int threads() const { return threads_; }

  /// Counts the ranks that share this node's memory, this one included.
  int node_ranks() const { return node_ranks_; }
  /// Returns the place of this rank among them.
  int node_rank() const { return node_rank_; }
  /// Counts the devices that the ranks of this node compute on; none where they have none.
  int node_devices() const { return node_devices_; }

  /// Says what this rank is about to do, for the sentence of a failure.
  void doing(std::string activity) { context_->doing = std::move(activity); }

  /// Ends the whole job: one rank prints one sentence, then every rank is gone. Exit code 2 for a
  /// UsageError, 1 for anything else. Where all ranks fail together they finalize MPI and exit, so
  /// that the launcher does not report an abort.
  [[noreturn]] void fail(const std::exception& error);

 private:
  bool everybody_fails();

  std::shared_ptr<CommContext> context_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> failing_;  // the world again, for the barrier of ranks that fail
  int threads_ = 1;
  int node_ranks_ = 1;
  int node_rank_ = 0;
  int node_devices_ = 0;
};

}  // namespace mpi4dl
