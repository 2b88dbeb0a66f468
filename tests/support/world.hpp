#pragma once

#include "backend/backend.hpp"
#include "comm/session.hpp"

namespace mpi4dl::testing {

/// Returns the one session of a test program; every rank runs every test, in the same order.
Session& session();

/// Connects all ranks of the test.
inline const Communicator& world() {
  return session().world();
}

/// Returns what the tensors under test are computed by, and where.
inline const Backend& backend() {
  return *world().context().backend;
}

inline at::Tensor on_device(const at::Tensor& values) {
  return backend().from_host(values);
}

}  // namespace mpi4dl::testing
