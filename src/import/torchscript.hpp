#pragma once

#include <cstdint>
#include <string>

#include "graph/shape.hpp"
#include "import/program.hpp"

namespace mpi4dl {

/// Says how much the process that reads a file may take.
struct TorchScriptLimits {
  double seconds = 300;
  int64_t bytes = int64_t{4} << 30;  ///< beyond twice the size of the file
};

/// Reads what torch.jit.trace(...).save or torch.jit.script(...).save wrote, as the operators that
/// it calls for images of this size. Because libtorch executes code of such a file while it loads
/// it, a process of its own does so, which can open no file and reach no network
/// (import/torchscript/). It hands back text, which is read as that of an exported program is;
/// values of tensors stay in the file. Throws Error that names the file.
Program read_torchscript(const std::string& path, const Extents& image,
                         const TorchScriptLimits& limits = {});

/// Throws where the archive's directory says that a file is of another kind, such as weights alone.
void check_torchscript(const std::string& path);

}  // namespace mpi4dl
