#pragma once

#include <vector>

#include "data/bad_samples.hpp"
#include "data/dataset.hpp"

namespace mpi4dl {

/// Holds what the headers of a data set's images tell, the same on every rank.
struct Survey {
  /// Counts images with one kind of problem.
  struct Problems {
    int64_t images = 0;
    std::string first = {};  ///< what is wrong with the first of them
  };

  int64_t images = 0;
  Problems unreadable = {}, unsuitable = {};
  BadSamples bad = {};  ///< both, if they are to be left out

  int64_t good() const { return images - unreadable.images - unsuitable.images; }
  bool all_good() const { return good() == images; }
};

/// Opens the file of every image, each rank those of a share, on several threads. It names the bad
/// ones only `with_names`, because that may be many. Collective over the world.
Survey survey(const Dataset& data, bool with_names, const Communicator& world);

/// Returns all parts in one sentence: "1,203 images: 1,200 readable, 2 cannot be opened (first:
/// ...)".
std::string describe(const std::vector<Survey>& parts);

}  // namespace mpi4dl
