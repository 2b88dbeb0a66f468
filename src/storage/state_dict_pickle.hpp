#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/tensor_source.hpp"

namespace mpi4dl {

/// Where a pickled tensor has its values.
struct PickledTensor {
  TensorInfo info;
  std::string storage;  ///< the record that holds them, and perhaps those of other tensors
  int64_t offset = 0;   ///< elements in it before the first one
  std::vector<int64_t> strides;
};

/// Reads what Python's torch.save made of a state_dict: names and tensors. Knows the dozen of
/// opcodes and the four Python names that occur in one, and refuses everything else, so a file
/// cannot make it run anything. Throws Error.
std::map<std::string, PickledTensor> read_state_dict(std::string_view pickle);

}  // namespace mpi4dl
