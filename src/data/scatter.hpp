#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace mpi4dl {

/// Draws the random numbers of one image, one after the other: they depend on its key alone.
class Draw {
 public:
  explicit Draw(uint64_t key) : key_(key) {}
  double number() { return uniform(key_, counter_++); }
  /// Returns one of 0, ..., count - 1.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(number() * static_cast<double>(count));
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

/// Corner is the upper left pixel of a square on a canvas.
struct Corner {
  int64_t row = 0, column = 0;
};

/// Finds places for `count` squares of side x side pixels that do not overlap, on a canvas of size
/// x size. Returns none where it finds no space.
std::vector<Corner> scatter(int count, int64_t side, int64_t size, Draw& draw);

}  // namespace mpi4dl
