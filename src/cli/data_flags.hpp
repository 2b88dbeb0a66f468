#pragma once

#include <string>

#include "cli/view_flags.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"

namespace mpi4dl {

class Communicator;

/// Holds the flags that choose images, for every command that reads some.
struct DataFlags {
  std::string app;   // empty: files where there is a path, else synthetic
  std::string path;  // empty: ./train
  /// Says that images are synthetic unless an application is given, as MPI4DL's benchmarks say by
  /// --app 3; then --datapath ./train, the default there, asks for nothing.
  bool of_benchmark = false;
  int64_t images = 0;  // 0: as many as the command wants
  double val_fraction = 0;
  std::string normalise = "0.5,0.5";
  ViewFlags view;

  void add_to(CLI::App& command);
  /// Throws UsageError where flags contradict each other.
  void check() const;
  /// Returns synthetic, random, cifar or medical, where the reference has numbers.
  std::string application() const;
  /// Returns what is made of pixels, before the model sees them.
  Normalisation normalisation() const { return parse_normalisation(normalise); }
  /// Returns whether images come from files, and not from a generator in the size asked for.
  bool reads_files() const;
};

/// Says what a command wants of its images.
struct DataRequest {
  Shape image = {};  ///< without spatial extents: each file as large as it is
  int64_t classes = 10;
  uint64_t seed = 1;                    ///< of synthetic images
  int64_t synthetic_images = 1;         ///< where --num-images does not say
  bool labelled = true;                 ///< false: images whose class nobody knows will do
  std::vector<std::string> names = {};  ///< of the classes, where a model knows them
};

/// Opens the images; throws UsageError where flags and files do not fit. Collective over the world.
DataParts open_data(const DataFlags& flags, const DataRequest& request, const Communicator& world);

}  // namespace mpi4dl
