#pragma once

#include <cstdint>

namespace mpi4dl {

struct CommContext;

/// Counts the memory of this rank that is in use now, code and libraries included. The system also
/// counts each page of other ranks' shared memory that this rank has looked at; these are theirs.
int64_t resident_bytes(const CommContext& context);

}  // namespace mpi4dl
