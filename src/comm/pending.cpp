#include "comm/pending.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "comm/check.hpp"

namespace mpi4dl {

Pending::Pending(std::shared_ptr<const CommContext> context, WaitReason reason,
                 std::shared_ptr<void> owner)
    : context_(std::move(context)), reason_(std::move(reason)), owner_(std::move(owner)) {}

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(reason_, other.reason_);
  std::swap(result_, other.result_);
  std::swap(owner_, other.owner_);
  std::swap(requests_, other.requests_);
  std::swap(then_, other.then_);
  return *this;
}

Pending::~Pending() {
  if (requests_.empty()) return;
  if (std::uncaught_exceptions() > 0) {
    abandon();
    return;
  }
  try {
    finish();
  } catch (const std::exception& error) {
    abandon();
    std::fprintf(stderr, "mpi4dl: a message was abandoned: %s\n", error.what());
  }
}

/// MPI may still write into it, so nobody may ever free it.
void Pending::abandon() {
  new std::shared_ptr<void>(std::move(owner_));  // NOLINT: kept forever
}

bool Pending::ready() {
  if (requests_.empty()) return true;
  int done = 0;
  mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                  MPI_STATUSES_IGNORE));
  if (done == 0) return false;
  requests_.clear();
  if (then_) std::exchange(then_, nullptr)();
  return true;
}

void Pending::finish() {
  if (requests_.empty()) return;
  wait_until([this] { return ready(); }, *context_, [this] { return reason_; });
}

at::Tensor Pending::wait() && {
  finish();
  return std::move(result_);
}

}  // namespace mpi4dl
