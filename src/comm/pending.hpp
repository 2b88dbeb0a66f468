#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <functional>
#include <memory>
#include <vector>

#include "comm/waiting.hpp"

namespace mpi4dl {

/// Stands for a message or collective in flight, whose memory it owns until MPI has finished with
/// it.
class Pending {
 public:
  Pending() = default;
  /// `owner` keeps the memory of the message alive.
  Pending(std::shared_ptr<const CommContext> context, WaitReason reason,
          std::shared_ptr<void> owner);
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  /// Waits, so that nobody writes into freed memory; while an exception unwinds the stack the
  /// memory is left behind instead, because the job is about to end.
  ~Pending();

  /// Returns where the next MPI call stores its request.
  MPI_Request* add_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  /// Sets what wait() will return.
  void give(at::Tensor result) { result_ = std::move(result); }
  /// Runs once after completion, for example to copy a staged message to its device.
  void then(std::function<void()> action) { then_ = std::move(action); }

  /// Returns true once everything has arrived; never blocks.
  bool ready();
  /// Blocks until everything has arrived, then returns what was received.
  at::Tensor wait() &&;
  /// Blocks until everything has arrived.
  void finish();

 private:
  void abandon();

  std::shared_ptr<const CommContext> context_;
  WaitReason reason_;
  at::Tensor result_;
  std::shared_ptr<void> owner_;
  std::vector<MPI_Request> requests_;
  std::function<void()> then_;
};

}  // namespace mpi4dl
