#pragma once

#include <string>

#include "cli/view_flags.hpp"
#include "data/dataset.hpp"

namespace mpi4dl {

class Communicator;

/// The flags that choose images, for every command that reads some.
struct DataFlags {
  std::string app = "synthetic";
  std::string path;    // empty: ./train
  int64_t images = 0;  // 0: as many as the command wants
  double val_fraction = 0;
  ViewFlags view;

  void add_to(CLI::App& command);
  /// synthetic, random, cifar or medical, where the reference has numbers.
  std::string application() const;
};

/// What a command wants of its images.
struct DataRequest {
  Shape image = {};  ///< without spatial extents: each file as large as it is
  int64_t classes = 10;
  uint64_t seed = 1;             ///< of synthetic images
  int64_t synthetic_images = 1;  ///< where --num-images does not say
  bool labelled = true;          ///< false: files whose class nobody knows will do
};

/// Throws UsageError where flags and files do not fit. Collective over the world.
DataParts open_data(const DataFlags& flags, const DataRequest& request, const Communicator& world);

}  // namespace mpi4dl
