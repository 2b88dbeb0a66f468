#include "models/options.hpp"

#include <fmt/format.h>

namespace mpi4dl {

std::string nearest_valid(int64_t wrong, int64_t first, int64_t step) {
  if (wrong < first) return fmt::format("{}", first);
  const int64_t below = wrong - (wrong - first) % step;
  return fmt::format("{} and {}", below, below + step);
}

}  // namespace mpi4dl
