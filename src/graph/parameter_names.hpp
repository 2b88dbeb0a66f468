#pragma once

#include <set>
#include <string>

#include "graph/graph.hpp"

namespace mpi4dl {

/// Returns the parameters that training leaves as they are: frozen ones, and the statistics of
/// frozen batch norms.
std::set<std::string> constant_parameters(const Graph& graph);

/// Says which parameters a pattern is about.
enum class AmongParameters { all, trained };

/// Returns the parameters whose names a shell pattern matches: * stands for any characters, dots
/// included, ? for one, [abc] for one of these. Throws UsageError, beginning with `what` and naming
/// the nearest names, where it matches none.
std::set<std::string> matching_parameters(const Graph& graph, const std::string& pattern,
                                          AmongParameters among, const std::string& what);

}  // namespace mpi4dl
