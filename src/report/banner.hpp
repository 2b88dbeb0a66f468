#pragma once

#include <string>

#include "data/dataset.hpp"
#include "layout/layout.hpp"
#include "train/checkpointing.hpp"

namespace mpi4dl {

/// Says how a user would change what a run is about to do, in the words of the command line.
struct BannerHints {
  std::string hold_out_images, keep_layers_on_tiles, keep_checkpoints;
};

/// Says what a training run is about to do.
struct BannerFacts {
  const DataParts& data;
  const Layout& layout;
  const ParallelOptions& asked;  ///< for the layout
  const CheckpointOptions& checkpoints;
  int64_t classes = 1;  ///< that the model knows
  int64_t effective_batch = 1;
  std::string fit = {};         ///< empty: images are made in the right size
  std::string eval_every = {};  ///< "" is every epoch where images are held out
  int threads = 1;              ///< of a rank
  int64_t memory_bytes = 0;     ///< that the rank which needs most is expected to need
  int64_t host_bytes = 0;       ///< beside it, where those are of a device; 0: they are all
  BannerHints hints = {};
};

/// Returns the facts in lines for people: images and classes, what is left out, ranks and why so
/// many, memory, checkpoints.
std::string banner(const BannerFacts& facts);

}  // namespace mpi4dl
