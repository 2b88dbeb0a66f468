#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/mnist.hpp"

namespace mpi4dl {

/// Makes the task of Katharopoulos and Fleuret, "Processing Megapixel Images with Deep
/// Attention-Sampling Models", 2019: a large black canvas with five digits at random places, three
/// of which are the same, and patterns of two strokes each that look a little like digits. The
/// class of an image is the digit that is there three times. Nothing overlaps.
class MegapixelMnist {
 public:
  struct Options {
    int64_t size = 1500;  ///< height and width of the canvas
    int noise = 50;       ///< patterns
    uint64_t seed = 1;
  };
  struct Image {
    std::vector<uint8_t> pixels;  ///< row by row
    int label = 0;
  };

  /// Throws UsageError where a digit is missing.
  MegapixelMnist(const std::vector<Digit>& digits, const Options& options);

  /// Makes image `index` of an endless row, in which classes alternate. Throws UsageError where the
  /// canvas is too small.
  Image make(int64_t index) const;

 private:
  const Options options_;
  std::vector<std::vector<Digit>> by_label_;
};

}  // namespace mpi4dl
