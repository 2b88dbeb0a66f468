#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mpi4dl {

/// Parses JSON from a file that may be hostile: throws Error where it is nested deeply or would
/// take more memory than a model's takes, before it does.
nlohmann::json parse_bounded(const std::string& text, const std::string& name);

/// Returns a number; throws Error where it is something else, has digits behind a point or does not
/// fit.
int64_t whole_number(const nlohmann::json& value);

}  // namespace mpi4dl
