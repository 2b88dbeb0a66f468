#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "geometry/grid.hpp"

namespace mpi4dl::testing {

/// Makes the random choices of a seeded test: the same on every rank and on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}

  /// Returns a whole number in [low, high].
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() * static_cast<double>(high - low + 1));
  }
  bool chance(double probability) { return next() < probability; }

  template <typename T>
  T one_of(const std::vector<T>& choices) {
    return choices[pick(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return one_of(std::vector<T>(choices));
  }

  /// Returns any factorisation of `ranks` into batch parts, rows and columns.
  Grid grid(int ranks) {
    std::vector<Grid> all;
    for (int batch = 1; batch <= ranks; ++batch)
      for (int rows = 1; rows * batch <= ranks; ++rows)
        if (ranks % (batch * rows) == 0) all.push_back({batch, rows, ranks / (batch * rows)});
    return one_of(all);
  }

 private:
  double next() { return uniform(seed_, counter_++); }

  uint64_t seed_;
  uint64_t counter_ = 0;
};

/// Returns the first result of `draw` that can be: what does not fit together is drawn again.
template <typename Draw>
auto draw_until_it_fits(const Draw& draw) {
  for (;;) {
    try {
      return draw();
    } catch (const UsageError&) {
      continue;
    }
  }
}

inline int64_t number_from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoll(text);
}

/// Returns the seeds of `count` cases. MPI4DL_CASES multiplies their number, MPI4DL_SEED is the
/// first one: with the seed of a failure, that case comes first.
inline std::vector<uint64_t> seeds(int64_t count) {
  const auto first = static_cast<uint64_t>(number_from_environment("MPI4DL_SEED", 1));
  std::vector<uint64_t> all(count * number_from_environment("MPI4DL_CASES", 1));
  for (size_t i = 0; i < all.size(); ++i) all[i] = first + i;
  return all;
}

}  // namespace mpi4dl::testing
