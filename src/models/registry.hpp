#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "models/options.hpp"

namespace mpi4dl {

using ModelBuilder = std::function<Graph(const ModelOptions&)>;

/// Returns the graph of the model `options.name`; throws UsageError where the options do not fit
/// it.
Graph build_model(const ModelOptions& options);

/// Returns the names that build_model knows, in alphabetical order.
std::vector<std::string> model_names();

/// Makes a user's own model known by name, for this process; a name is given only once.
void register_model(const std::string& name, ModelBuilder builder);

}  // namespace mpi4dl
