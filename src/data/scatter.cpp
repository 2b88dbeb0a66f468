#include "data/scatter.hpp"

#include <algorithm>
#include <cstdlib>

namespace mpi4dl {
namespace {

bool overlap(const Corner& a, const Corner& b, int64_t side) {
  return std::abs(a.row - b.row) < side && std::abs(a.column - b.column) < side;
}

/// Places one after the other wherever there is space; fewer than `count` if that fails.
std::vector<Corner> place_in_turn(int count, int64_t side, int64_t size, Draw& draw) {
  constexpr int kAttempts = 1000;
  std::vector<Corner> corners;
  for (int attempt = 0; attempt < kAttempts && static_cast<int>(corners.size()) < count;) {
    const int64_t row = draw.below(size - side + 1), column = draw.below(size - side + 1);
    const Corner corner{row, column};
    const bool free = std::ranges::none_of(
        corners, [&](const Corner& taken) { return overlap(taken, corner, side); });
    if (free) corners.push_back(corner);
    attempt = free ? 0 : attempt + 1;
  }
  return corners;
}

}  // namespace

std::vector<Corner> scatter(int count, int64_t side, int64_t size, Draw& draw) {
  constexpr int kAttempts = 20;
  if (side > size) return {};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<Corner> corners = place_in_turn(count, side, size, draw);
    if (static_cast<int>(corners.size()) == count) return corners;
  }
  return {};
}

}  // namespace mpi4dl
