#pragma once

#include <string>

namespace mpi4dl::fuzz {

/// Imports the model in the bytes of a file at the size at which it was exported and at another
/// one, writes and reads its graph, and reads its tensors. A file that is refused is none of our
/// business; any other exception than Error ends the process, and so is found.
void import_everything(const std::string& bytes);

}  // namespace mpi4dl::fuzz
