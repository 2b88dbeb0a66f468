#pragma once

#include <string>

#include "data/image_files.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// Holds the flags that say how an image file is shown.
struct ViewFlags {
  std::string fit = "exact";
  int level = 0;
  double micrometres = 0;

  void add_to(CLI::App& command);
  /// Throws UsageError where they contradict each other. `canvas`: height and width; empty: each
  /// image as large as it is.
  ViewOptions options(const Extents& canvas) const;
};

}  // namespace mpi4dl
