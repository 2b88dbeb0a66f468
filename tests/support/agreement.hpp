#pragma once

#include <gtest/gtest.h>

#include "comm/collectives.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {

/// Returns whether the test that runs has failed on some rank: all ranks then leave it together.
/// Collective.
inline bool failed_anywhere() {
  for (const int failed : all_gather(::testing::Test::HasFailure() ? 1 : 0, world()))
    if (failed != 0) return true;
  return false;
}

}  // namespace mpi4dl::testing
