#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

/// Makes a task in which what matters is small: a large grey canvas with shapes of 12x12 pixels at
/// random places: glyphs, rotated and mirrored at random, and distractors. The class of an image is
/// the glyph that occurs most often. Half of the pixels of every shape are bright, so that shapes
/// differ in detail only. Nothing overlaps.
class GlyphImages {
 public:
  static constexpr int64_t kSide = 12;  ///< height and width of a shape in pixels
  static constexpr int kMostClasses = 4;

  struct Options {
    int64_t size = 1024;  ///< height and width of the canvas
    int classes = kMostClasses;
    int most = 6;    ///< how often the glyph of the class occurs
    int others = 2;  ///< how often each other glyph occurs
    int distractors = 6;
    uint64_t seed = 1;
  };
  struct Image {
    std::vector<uint8_t> pixels;  ///< grey, row by row
    int label = 0;
  };

  /// Throws UsageError where no glyph would occur most often.
  explicit GlyphImages(const Options& options);

  /// Makes image `index` of an endless row, in which classes alternate. Throws UsageError where
  /// the canvas is too small.
  Image make(int64_t index) const;

  /// Returns the name of a class. Names are in the order of the alphabet, as those of folders are.
  static std::string class_name(int label);

 private:
  const Options options_;
};

}  // namespace mpi4dl
