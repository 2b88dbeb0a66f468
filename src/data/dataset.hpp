#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "geometry/box.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

/// Says what is wrong with an image, as far as one can tell without a look at its pixels.
struct Problem {
  enum class Kind {
    none,
    unreadable,  ///< it cannot be opened
    unsuitable   ///< it cannot be shown as it should be
  };
  Kind kind = Kind::none;
  std::string reason = {};
};

/// Holds images, of which every rank reads only its own boxes. Any number of threads may call at a
/// time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// Returns height and width of an image as this data set presents it.
  virtual Extents extent(int64_t sample) const = 0;
  /// Returns its class, known without a look at its pixels; below 0 where nobody knows it.
  virtual int64_t label(int64_t sample) const = 0;
  /// Returns what a sentence calls it: its file, or "synthetic 17".
  virtual std::string name(int64_t sample) const = 0;
  /// Opens an image, if it has a file of its own.
  virtual Problem look_at(int64_t /*sample*/) const { return {}; }
  /// Returns the pixels of a box of one image, channels first: its batch axis is ignored. Throws
  /// Error, naming the image and what is wrong with it, where it cannot be read.
  virtual at::Tensor read(int64_t sample, const Box& box) const = 0;
};

/// Holds what a model learns from, and what shows how well.
struct DataParts {
  std::shared_ptr<const Dataset> training;
  std::shared_ptr<const Dataset> validation;  ///< null where nothing is held out
  std::vector<std::string> classes = {};      ///< their names; none where they have indices alone
};

}  // namespace mpi4dl
