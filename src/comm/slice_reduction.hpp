#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <functional>

#include "comm/bulletin.hpp"
#include "comm/communicator.hpp"

namespace mpi4dl {

/// Reduces many numbers in place between the ranks of a node, each of which reads a slice of
/// everybody's numbers where they lie:
///
///     rank 0   a0 b0   --- reduces a0, a1 --->   a  b0   --- copies b --->   a b
///     rank 1   a1 b1   --- reduces b0, b1 --->   a1 b    --- copies a --->   a b
///
/// MPI passes slices from rank to rank and adds on the way, with a call of the system for each.
/// Everybody has the same result to the bit. Numbers outside of the shared memory are copied there
/// first. Collective.
void all_reduce_in_slices(at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                          const Communicator& comm, Bulletin& bulletin,
                          const std::function<WaitReason()>& reason);

}  // namespace mpi4dl
