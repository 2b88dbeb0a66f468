#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <functional>

#include "comm/bulletin.hpp"
#include "comm/communicator.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

// Reductions of many numbers between the ranks of a node, each of which reads a slice of
// everybody's numbers where they lie:
//
//     rank 0   a0 b0   --- reduces a0, a1 --->   a  b0   --- gathers b --->   a b
//     rank 1   a1 b1   --- reduces b0, b1 --->   a1 b    --- gathers a --->   a b
//
// MPI passes slices from rank to rank and adds on the way, with a call of the system for each.
// Everybody has the same result to the bit. Numbers outside of the shared memory are copied there
// first. Each is collective.

/// How the ranks of a group meet.
struct Meeting {
  const Communicator& comm;
  Bulletin& bulletin;
  const std::function<WaitReason()>& reason;
};

/// Which of so many numbers a rank reduces.
Interval slice(int64_t elements, int rank, int ranks);

/// Reduces this rank's slice. The rest must stay as it is until slices are gathered.
void reduce_slice(const at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                  const Meeting& meeting);

/// Copies everybody's slice from where that rank has it.
void gather_slices(const at::Tensor& numbers, const Meeting& meeting);

/// Both.
void all_reduce_in_slices(const at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                          const Meeting& meeting);

}  // namespace mpi4dl
