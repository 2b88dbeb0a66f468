#pragma once

#include <sched.h>

namespace mpi4dl {

/// Returns the cores that this thread may use; core 0 alone where the system does not say.
inline cpu_set_t allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) CPU_SET(0, &mask);
  return mask;
}

/// Returns whether two masks have a core in common.
inline bool overlap(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) > 0;
}

}  // namespace mpi4dl
