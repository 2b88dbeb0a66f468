#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "support/simulated_device.hpp"

// What tests of the device do with it: as any user, through libtorch's device-generic interface.

namespace mpi4dl::simulated {

inline c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(device().type());
}

inline c10::Stream first_stream() {
  return guard().getDefaultStream(device());
}
inline c10::Stream another_stream() {
  return guard().getStreamFromGlobalPool(device(), false);
}

inline c10::Event recorded(const c10::Stream& stream) {
  c10::Event event(device().type());
  event.record(stream);
  return event;
}

inline void wait_for(const c10::Stream& stream) {
  guard().synchronizeStream(stream);
}

template <class Work>
auto on(const c10::Stream& stream, const Work& work) {
  const c10::StreamGuard current(stream);
  return work();
}

/// Makes libtorch deterministic, or not, and as it was before in the end.
class Deterministic {
 public:
  explicit Deterministic(bool wanted) { set(wanted); }
  ~Deterministic() { set(before_); }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  static void set(bool wanted) {
    at::globalContext().setDeterministicAlgorithms(wanted, /*warn_only=*/true);
  }
  const bool before_ = at::globalContext().deterministicAlgorithms();
};

/// Gives a test a second stream, and leaves everything at rest.
class SimulatedDevice : public ::testing::Test {
 protected:
  void TearDown() override {
    wait_for(first_stream());
    wait_for(second);
  }

  static at::Tensor ones(at::IntArrayRef sizes) { return at::ones(sizes, at::device(device())); }
  static at::Tensor empty(at::IntArrayRef sizes) { return at::empty(sizes, at::device(device())); }
  static at::Tensor pinned(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
    return at::empty(sizes, at::device(at::kCPU).dtype(type).pinned_memory(true));
  }

  const Deterministic nothing_fills_fresh_memory{false};
  const c10::Stream second = another_stream();
};

}  // namespace mpi4dl::simulated
