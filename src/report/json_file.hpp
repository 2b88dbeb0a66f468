#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mpi4dl {

/// Writes a result for other programs; throws Error where the file cannot be written.
void write_json(const std::string& file, const nlohmann::ordered_json& result);

}  // namespace mpi4dl
