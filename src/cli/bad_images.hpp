#pragma once

#include <string>

#include "data/bad_samples.hpp"
#include "data/dataset.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

class Session;

/// Holds the flag --on-bad-image.
struct BadImageFlag {
  std::string value = "fail";

  void add_to(CLI::App& command);
  bool skip() const { return value == "skip"; }
};

struct BadParts {
  BadSamples training, validation;
};

/// Looks at the headers of all images before anything is computed. Where some are bad, it throws
/// CommonError with how many; or, if they are to be skipped, says which and returns them.
/// Collective over the world.
BadParts check_images(const DataParts& parts, bool skip, Session& session);

/// Tells of an image that is left out.
void warn(const std::string& sentence);

}  // namespace mpi4dl
