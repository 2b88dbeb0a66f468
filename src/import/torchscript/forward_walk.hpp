#pragma once

#include "graph/shape.hpp"
#include "import/program.hpp"
#include "import/torchscript/module_file.hpp"

namespace mpi4dl {

/// Walks through the forward method of a module, for images of this size, and returns the operators
/// that it calls, in the order in which it does. What does not depend on values of the image is
/// computed on the way: numbers and sizes, lists, branches and loops. Throws UsageError where a
/// branch depends on values, and the like.
Program walk_forward(const ModuleFile& file, torch::jit::Module module, const Extents& image);

}  // namespace mpi4dl
