#include "data/megapixel_mnist.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "data/scatter.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kSide = Digit::kSide;
constexpr int kLabels = 10, kSame = 3, kOthers = 2;

using Pattern = std::array<uint8_t, kSide * kSide>;

/// Draws from a corner into the square, not quite as bright as ink everywhere.
void draw_stroke(Pattern& pattern, Draw& draw) {
  constexpr int kPoints = 2 * kSide;
  constexpr double kReach = kSide - 0.51;
  const double slope = std::tan(draw.number() * std::numbers::pi / 2.5);
  const double rows = std::min(kReach, kReach / slope);
  const bool mirrored = draw.number() < 0.5;
  for (int point = 0; point < kPoints; ++point) {
    const double row = rows * point / (kPoints - 1);
    const int64_t column = std::llround(slope * row);
    pattern[std::llround(row) * kSide + (mirrored ? kSide - 1 - column : column)] =
        static_cast<uint8_t>(204 + 51 * draw.number());
  }
}

void paste(const Pattern& pattern, const Corner& corner, int64_t size,
           std::vector<uint8_t>& pixels) {
  for (int64_t row = 0; row < kSide; ++row)
    std::copy_n(pattern.begin() + row * kSide, kSide,
                pixels.begin() + (corner.row + row) * size + corner.column);
}

}  // namespace

MegapixelMnist::MegapixelMnist(const std::vector<Digit>& digits, const Options& options)
    : options_(options), by_label_(kLabels) {
  for (const Digit& digit : digits) by_label_[digit.label].push_back(digit);
  for (int label = 0; label < kLabels; ++label)
    validate(!by_label_[label].empty(), "MNIST has no digit {}", label);
}

MegapixelMnist::Image MegapixelMnist::make(int64_t index) const {
  const int64_t size = options_.size;
  Draw draw(
      combine_keys(combine_keys(options_.seed, key_of("megapixel")), static_cast<uint64_t>(index)));
  Image image{.pixels = std::vector<uint8_t>(size * size),
              .label = static_cast<int>(index % kLabels)};
  std::vector<Pattern> patterns;
  const auto add_digit = [&](int64_t label) {
    const std::vector<Digit>& choice = by_label_[label];
    patterns.push_back(choice[draw.below(static_cast<int64_t>(choice.size()))].pixels);
  };
  for (int i = 0; i < kSame; ++i) add_digit(image.label);
  for (int i = 0; i < kOthers; ++i)
    add_digit((image.label + 1 + draw.below(kLabels - 1)) % kLabels);
  for (int i = 0; i < options_.noise; ++i) {
    Pattern& pattern = patterns.emplace_back();
    draw_stroke(pattern, draw);
    draw_stroke(pattern, draw);
  }
  const auto count = static_cast<int>(patterns.size());
  const std::vector<Corner> corners = scatter(count, kSide, size, draw);
  validate(!corners.empty(),
           "a canvas of {0}x{0} has no room for {1} digits and {2} patterns of {3}x{3}; use a "
           "larger canvas or less noise",
           size, kSame + kOthers, options_.noise, kSide);
  for (int i = 0; i < count; ++i) paste(patterns[i], corners[i], size, image.pixels);
  return image;
}

}  // namespace mpi4dl
