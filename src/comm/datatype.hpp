#pragma once

#include <c10/core/ScalarType.h>
#include <mpi.h>

namespace mpi4dl {

enum class Reduction { sum, min, max };

/// Returns the MPI type of a tensor element: float32, float64, bfloat16, float16 or int64. The two
/// half types travel as 16-bit integers.
MPI_Datatype mpi_type(c10::ScalarType type);

/// Returns the MPI operation for this element type. MPI does not know bfloat16 and float16; theirs
/// add in float32 and round once per step. It is created at first use and valid until MPI ends.
MPI_Op mpi_op(Reduction reduction, c10::ScalarType type);

/// Moments are a triple (count, mean, sum of squared deviations); the operation merges two of them
/// by Chan's formula, written so that a+b and b+a round alike.
MPI_Datatype moments_type();
MPI_Op moments_op();

}  // namespace mpi4dl
