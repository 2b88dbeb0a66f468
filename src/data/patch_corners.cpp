#include "data/patch_corners.hpp"

#include <algorithm>

namespace mpi4dl {

std::vector<Corner> random_corners(const Extents& image, int64_t side, int64_t count, Draw& draw) {
  std::vector<Corner> corners;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = draw.below(image[0] - side + 1), column = draw.below(image[1] - side + 1);
    corners.push_back({row, column});
  }
  return corners;
}

std::vector<Corner> covering_corners(const Extents& image, int64_t side) {
  std::vector<Corner> corners;
  for (int64_t row = 0; row < image[0]; row += side)
    for (int64_t column = 0; column < image[1]; column += side)
      corners.push_back({std::min(row, image[0] - side), std::min(column, image[1] - side)});
  return corners;
}

}  // namespace mpi4dl
