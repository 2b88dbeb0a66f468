#pragma once

#include "comm/session.hpp"

namespace mpi4dl::testing {

/// The one session of a test program; every rank runs every test, in the same order.
Session& session();

/// All ranks of the test.
inline const Communicator& world() {
  return session().world();
}

}  // namespace mpi4dl::testing
