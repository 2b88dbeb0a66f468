#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// Returns true where few ranks reduce a small message, so that sending it to everybody costs
/// nearly nothing but its latency.
bool reduces_directly(int ranks, int64_t bytes);

/// Reduces a small message in place between ranks that do not share memory: everybody sends its
/// elements to everybody else. MPI passes partial sums on from rank to rank, log2(ranks) messages
/// one after the other; here all of them travel at once. Everybody adds in the order of ranks, so
/// all have the same result to the bit. Collective.
void direct_all_reduce(std::span<std::byte> values, int count, MPI_Datatype type, MPI_Op operation,
                       const Communicator& group);

}  // namespace mpi4dl
