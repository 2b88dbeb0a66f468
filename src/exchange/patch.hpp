#pragma once

#include "backend/patch.hpp"
#include "comm/communicator.hpp"

namespace mpi4dl {

/// Makes an uninitialised patch on the device, where the node's other ranks can read it if that is
/// possible.
Patch make_patch(const Communicator& comm, const Box& box, c10::ScalarType type);

}  // namespace mpi4dl
