#pragma once

#include <string>

#include "cli/bad_images.hpp"
#include "data/loader.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

/// Holds the flags that say how images are loaded while a model trains.
struct LoaderFlags {
  int workers = 0;
  BadImageFlag on_bad_image;
  std::string augment = "none";

  void add_to(CLI::App& command);
  /// Throws UsageError where the list of augmentations is not sound. Batch, epochs, image and seed
  /// are for the command to say.
  LoaderOptions options() const;
};

}  // namespace mpi4dl
