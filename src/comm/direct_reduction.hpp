#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// True where few ranks have few numbers, so that sending them to everybody costs nearly nothing
/// but the time that a message takes.
bool reduces_directly(const Communicator& comm, size_t bytes);

/// Small all-reductions between ranks that do not share memory, in place: everybody sends its
/// numbers to everybody else. MPI passes partial sums on from rank to rank, log2(ranks) messages
/// one after the other; here all of them travel at once. Everybody adds in the order of ranks, so
/// all have the same result to the bit. Collective.
void all_reduce_directly(std::span<std::byte> values, int count, MPI_Datatype type,
                         MPI_Op operation, const Communicator& comm);

}  // namespace mpi4dl
