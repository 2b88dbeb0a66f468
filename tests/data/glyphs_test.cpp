#include "data/glyphs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <set>
#include <span>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kSide = GlyphImages::kSide;
using Square = std::array<uint8_t, static_cast<size_t>(kSide* kSide)>;

std::string sentence_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

Square turned(const Square& square) {
  Square result;
  for (int64_t row = 0; row < kSide; ++row)
    for (int64_t column = 0; column < kSide; ++column)
      result[column * kSide + kSide - 1 - row] = square[row * kSide + column];
  return result;
}

Square mirrored(Square square) {
  for (int64_t row = 0; row < kSide; ++row)
    std::reverse(square.begin() + row * kSide, square.begin() + (row + 1) * kSide);
  return square;
}

/// Returns the first of all orientations: the same for two shapes if one is the other rotated or
/// mirrored.
Square canonical(Square square) {
  Square first = square;
  for (int way = 0; way < 8; ++way) {
    first = std::min(first, square);
    square = way == 3 ? mirrored(turned(square)) : turned(square);
  }
  return first;
}

int64_t bright_pixels(std::span<const uint8_t> pixels) {
  return std::count(pixels.begin(), pixels.end(), 255);
}

/// Returns a canvas that one shape fills: what a class looks like.
Square glyph(int label) {
  const GlyphImages images({.size = kSide, .classes = 4, .most = 1, .others = 0, .distractors = 0});
  Square square;
  std::ranges::copy(images.make(label).pixels, square.begin());
  return canonical(square);
}

Square window_at(int64_t row, int64_t column, const GlyphImages::Image& image, int64_t size) {
  Square window;
  for (int64_t y = 0; y < kSide; ++y)
    std::copy_n(image.pixels.begin() + (row + y) * size + column, kSide,
                window.begin() + y * kSide);
  return window;
}

/// Counts how often a glyph is on an image, in any orientation: every window is compared with it.
/// Stripes seen two pixels too early are stripes as well, and count once.
int64_t copies_of(const Square& wanted, const GlyphImages::Image& image, int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (int64_t row = 0; row + kSide <= size; ++row)
    for (int64_t column = 0; column + kSide <= size; ++column) {
      const Square window = window_at(row, column, image, size);
      if (bright_pixels(window) != bright_pixels(wanted) || canonical(window) != wanted) continue;
      const bool again = std::ranges::any_of(found, [&](const auto& other) {
        return std::abs(other.first - row) < kSide && std::abs(other.second - column) < kSide;
      });
      if (!again) found.emplace_back(row, column);
    }
  return std::ssize(found);
}

TEST(Glyphs, HaveEqualInkAndAreNotEachOtherTurned) {
  std::set<Square> glyphs;
  for (int label = 0; label < GlyphImages::kMostClasses; ++label) {
    EXPECT_EQ(bright_pixels(glyph(label)), 72) << GlyphImages::class_name(label);
    glyphs.insert(glyph(label));
  }
  EXPECT_EQ(glyphs.size(), static_cast<size_t>(GlyphImages::kMostClasses));
}

TEST(Glyphs, ClassNamesAreSortedAsFoldersAre) {
  for (int label = 1; label < GlyphImages::kMostClasses; ++label)
    EXPECT_LT(GlyphImages::class_name(label - 1), GlyphImages::class_name(label));
}

TEST(GlyphImages, HaveTheirClassMostOftenAndNothingOverlaps) {
  constexpr int64_t kSize = 200;
  const GlyphImages images(
      {.size = kSize, .classes = 4, .most = 5, .others = 2, .distractors = 7, .seed = 3});
  for (int64_t index = 0; index < 8; ++index) {
    const GlyphImages::Image image = images.make(index);
    EXPECT_EQ(image.label, index % 4);
    EXPECT_EQ(bright_pixels(image.pixels), (5 + 3 * 2 + 7) * 72);  // so none lies over another
    for (int label = 0; label < 4; ++label)
      EXPECT_EQ(copies_of(glyph(label), image, kSize), label == image.label ? 5 : 2)
          << "image " << index << ", " << GlyphImages::class_name(label);
  }
}

TEST(GlyphImages, DependOnSeedAndIndexAlone) {
  const GlyphImages images({.size = 300, .seed = 3}), others({.size = 300, .seed = 4});
  EXPECT_EQ(images.make(4).pixels, images.make(4).pixels);
  EXPECT_NE(images.make(4).pixels, images.make(8).pixels);
  EXPECT_NE(images.make(4).pixels, others.make(4).pixels);
}

TEST(GlyphImages, SayWhatCannotBe) {
  EXPECT_EQ(
      sentence_of([] { GlyphImages({.most = 2, .others = 2}); }),
      "2 of the most frequent glyph must be more than 2 of the others, or none occurs most often");
  EXPECT_EQ(sentence_of([] { GlyphImages({.classes = 5}); }),
            "there are glyphs for 2 to 4 classes, not for 5");
  EXPECT_EQ(
      sentence_of([] {
        GlyphImages({.size = 24, .classes = 2, .most = 3, .others = 1, .distractors = 1}).make(0);
      }),
      "a canvas of 24x24 has no room for 4 glyphs and 1 distractors of 12x12; use a larger "
      "canvas or fewer distractors");
}

}  // namespace
}  // namespace mpi4dl
