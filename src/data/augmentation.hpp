#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "data/dataset.hpp"
#include "geometry/box.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

/// Says which random changes an image goes through before a model learns from it.
struct AugmentationOptions {
  bool flip_horizontally = false, flip_vertically = false;
  bool turn = false;  ///< by 0, 90, 180 or 270 degrees
  double jitter = 0;  ///< brightness, contrast and saturation change by up to this share
  int64_t shift = 0;  ///< random crop: the image moves by up to so many pixels

  bool any() const;
};

/// Reads "hflip,vflip,turn,jitter=0.2,crop=4" in any order, or "none"; jitter and crop alone mean
/// these values. Throws UsageError where it is something else.
AugmentationOptions parse_augmentation(const std::string& text);

/// Changes images in a way that depends on seed, epoch and sample alone and is applied to the box
/// that is read: a rank reads no more of an image than it needs, and all ranks see parts of one
/// changed image, to the bit.
///
/// A change of place maps each row and each column of the result to one of the source, after an
/// exchange of the two if the image turns:
///
///     result[y, x] = source[row(y), column(x)]   or   source[row(x), column(y)]
///
/// What a crop would take from outside of the image it takes from the image's mirror.
class Augmentation {
 public:
  /// Throws UsageError where images of this shape cannot be changed so.
  Augmentation(const AugmentationOptions& options, Shape image, uint64_t seed);

  /// Returns the pixels of a box of the changed image, channels first.
  at::Tensor read(const Dataset& data, int64_t epoch, int64_t sample, const Box& box) const;

 private:
  AugmentationOptions options_;
  Shape image_;
  uint64_t key_;
};

}  // namespace mpi4dl
