#pragma once

#include <map>
#include <string>
#include <string_view>

#include "storage/archived_tensor.hpp"

namespace mpi4dl {

/// Reads what Python's torch.save made of a state_dict: names and tensors. Knows the dozen of
/// opcodes and the four Python names that occur in one, and refuses everything else, so a file
/// cannot make it run anything, nor take much more memory than the file. A tensor's storage is the
/// name of its record. Throws Error.
std::map<std::string, ArchivedTensor> read_state_dict(std::string_view pickle);

}  // namespace mpi4dl
