#pragma once

#include <string>
#include <vector>

namespace mpi4dl {

/// Returns the candidate that `typed` was most likely meant to be, or an empty string where none is
/// near: at most a third of its characters may be missing, wrong, superfluous or swapped with their
/// neighbour, unless it is the only one that begins with what was typed.
std::string nearest_name(const std::string& typed, const std::vector<std::string>& candidates);

/// Returns " (did you mean NAME?)", or an empty string where no candidate is near.
std::string suggestion(const std::string& typed, const std::vector<std::string>& candidates);

}  // namespace mpi4dl
