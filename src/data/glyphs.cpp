#include "data/glyphs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "data/scatter.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kGlyphSide = GlyphImages::kSide;
constexpr int64_t kPixels = kGlyphSide * kGlyphSide;
constexpr uint8_t kGround = 128, kBright = 255;

/// Says where pixels of a shape are bright, row by row.
using Weave = std::array<bool, kPixels>;

struct Glyph {
  const char* name;
  bool (*bright)(int64_t row, int64_t column);
};

// Nothing in them is wider than two pixels, and half of each is bright: from afar a glyph is a grey
// spot like any other. None is another one rotated.
constexpr std::array<Glyph, GlyphImages::kMostClasses> kGlyphs{{
    {"checks", [](int64_t row, int64_t column) { return (row / 2 + column / 2) % 2 == 0; }},
    {"diagonals", [](int64_t row, int64_t column) { return (row + column) % 4 < 2; }},
    {"dots", [](int64_t row, int64_t column) { return (row + column) % 2 == 0; }},
    {"stripes", [](int64_t row, int64_t /*column*/) { return row / 2 % 2 == 0; }},
}};

/// Lays a square tile in one of eight ways: rotated by quarters, and mirrored from the fifth on.
Weave woven(const Glyph& glyph, int64_t way) {
  Weave weave;
  for (int64_t row = 0; row < kGlyphSide; ++row)
    for (int64_t column = 0; column < kGlyphSide; ++column) {
      int64_t y = row, x = way < 4 ? column : kGlyphSide - 1 - column;
      for (int64_t quarter = 0; quarter < way % 4; ++quarter)
        y = std::exchange(x, kGlyphSide - 1 - y);
      weave[y * kGlyphSide + x] = glyph.bright(row, column);
    }
  return weave;
}

/// Returns cells of 2x2 pixels, half of which are bright, at random.
Weave distractor(Draw& draw) {
  constexpr int64_t kCells = kGlyphSide / 2;
  std::array<bool, kCells * kCells> cells{};
  std::fill_n(cells.begin(), cells.size() / 2, true);
  for (auto cell = std::ssize(cells) - 1; cell > 0; --cell)
    std::swap(cells[cell], cells[draw.below(cell + 1)]);
  Weave weave;
  for (int64_t row = 0; row < kGlyphSide; ++row)
    for (int64_t column = 0; column < kGlyphSide; ++column)
      weave[row * kGlyphSide + column] = cells[row / 2 * kCells + column / 2];
  return weave;
}

void paste(const Weave& weave, const Corner& corner, int64_t size, std::vector<uint8_t>& pixels) {
  for (int64_t row = 0; row < kGlyphSide; ++row)
    for (int64_t column = 0; column < kGlyphSide; ++column)
      if (weave[row * kGlyphSide + column])
        pixels[(corner.row + row) * size + corner.column + column] = kBright;
}

}  // namespace

GlyphImages::GlyphImages(const Options& options) : options_(options) {
  validate(options.classes >= 2 && options.classes <= kMostClasses,
           "there are glyphs for 2 to {} classes, not for {}", kMostClasses, options.classes);
  validate(
      options.most > options.others,
      "{} of the most frequent glyph must be more than {} of the others, or none occurs most often",
      options.most, options.others);
}

GlyphImages::Image GlyphImages::make(int64_t index) const {
  const int64_t size = options_.size;
  Draw draw(
      combine_keys(combine_keys(options_.seed, key_of("glyphs")), static_cast<uint64_t>(index)));
  Image image{.pixels = std::vector<uint8_t>(size * size, kGround),
              .label = static_cast<int>(index % options_.classes)};
  std::vector<Weave> shapes;
  for (int label = 0; label < options_.classes; ++label)
    for (int i = 0; i < (label == image.label ? options_.most : options_.others); ++i)
      shapes.push_back(woven(kGlyphs[label], draw.below(8)));
  const auto glyphs = shapes.size();
  for (int i = 0; i < options_.distractors; ++i) shapes.push_back(distractor(draw));
  const std::vector<Corner> corners =
      scatter(static_cast<int>(shapes.size()), kGlyphSide, size, draw);
  validate(!corners.empty(),
           "a canvas of {0}x{0} has no room for {1} glyphs and {2} distractors of {3}x{3}; use a "
           "larger canvas or fewer distractors",
           size, glyphs, options_.distractors, kGlyphSide);
  for (size_t i = 0; i < shapes.size(); ++i) paste(shapes[i], corners[i], size, image.pixels);
  return image;
}

std::string GlyphImages::class_name(int label) {
  return kGlyphs.at(label).name;
}

}  // namespace mpi4dl
