#pragma once

#include <string>

#include "models/options.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// The flags that choose a model and the size of its images, for every command that needs one.
struct ModelFlags {
  ModelOptions options;
  std::string image_size = "32";

  void add_to(CLI::App& command);
  /// What was asked for; throws UsageError where it is not sound.
  ModelOptions model() const;
};

}  // namespace mpi4dl
