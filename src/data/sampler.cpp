#include "data/sampler.hpp"

#include <numeric>
#include <utility>

#include "base/random.hpp"

namespace mpi4dl {

std::vector<int64_t> shuffled(int64_t size, uint64_t seed, int64_t epoch) {
  const uint64_t key = combine_keys(combine_keys(seed, key_of("order")), epoch);
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t last = size - 1; last > 0; --last) {
    const double drawn = uniform(key, static_cast<uint64_t>(last));
    std::swap(order[last], order[static_cast<int64_t>(drawn * static_cast<double>(last + 1))]);
  }
  return order;
}

}  // namespace mpi4dl
