#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "import/program_tensors.hpp"

namespace mpi4dl {

/// Says which group of tensors of an exported program is read.
enum class TensorGroup { weights, constants };

/// Returns a name of each tensor in the group, and its place. `archive` is left as the one that has
/// their storages: the file itself, or one within it.
std::map<std::string, StoredTensor> read_stored_tensors(ZipArchive& archive, TensorGroup group);

/// Reads a description of tensors, whose storages are entries of an archive in this folder.
std::map<std::string, StoredTensor> read_tensor_config(const nlohmann::json& config,
                                                       const std::string& folder);

/// Returns the number that PyTorch's export schema has for a type; 0 where it has none.
int number_of_type(c10::ScalarType type);
/// Returns whether the schema's number is that of a type of floating-point numbers.
bool is_floating_type(int64_t number);

/// Returns sizes or strides, which stand as [{"as_int": 4}, ...]; -1 for one that may vary.
std::vector<int64_t> read_sizes(const nlohmann::json& sizes);

}  // namespace mpi4dl
