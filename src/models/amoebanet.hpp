#pragma once

#include "graph/graph.hpp"
#include "models/options.hpp"

namespace mpi4dl {

/// Builds AmoebaNet-D with L normal cells: stem1, stem2, stem3, then three thirds of the normal
/// cells with a reduction between them, and classify, which gives logits; L+6 cells. Every cell
/// reads the outputs of the two cells before it, so two values cross each cut.
Graph amoebanet(const ModelOptions& options);

}  // namespace mpi4dl
