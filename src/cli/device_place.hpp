#pragma once

#include "comm/session.hpp"

namespace mpi4dl {

/// Checks what the launcher has said of the ranks' places against what MPI knows by now: a rank
/// that was to take its device by its place has taken that one. Throws UsageError on all ranks.
/// Collective over the world.
void check_place(const Session& session);

/// Says on each node where its ranks share devices. More ranks than devices are often a mistake:
/// another number of ranks was meant.
void tell_of_shared_devices(const Session& session);

}  // namespace mpi4dl
