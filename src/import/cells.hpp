#pragma once

#include "graph/graph.hpp"
#include "import/draft.hpp"

namespace mpi4dl {

/// Makes a graph of a draft, cut into cells: the largest modules with at most a sixteenth of the
/// work each, named by their paths, or so that there are about `cells` of them where that is not 0.
/// Nodes keep their order; those between modules join the next one.
Graph cut_into_cells(const Draft& draft, int cells);

}  // namespace mpi4dl
