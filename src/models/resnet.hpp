#pragma once

#include "graph/graph.hpp"
#include "models/options.hpp"

namespace mpi4dl {

/// Builds ResNet for small and large images: a stem, three stages of n blocks, a head that gives
/// logits; 3n+2 cells. Version 1 (depth 6n+2) activates after the addition, version 2 (9n+2) before
/// it.
Graph resnet(const ModelOptions& options);

}  // namespace mpi4dl
