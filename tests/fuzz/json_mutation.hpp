#pragma once

#include <cstddef>

namespace mpi4dl::fuzz {

/// Changes one of several JSON texts, which zeros divide, in place, as libFuzzer's custom mutators
/// do: most often so that it is JSON still, with another number, a value that stands elsewhere in
/// it, or one more or less. Returns how many bytes there are now.
size_t mutate_json_texts(unsigned char* data, size_t bytes, size_t most, unsigned int seed);

}  // namespace mpi4dl::fuzz
