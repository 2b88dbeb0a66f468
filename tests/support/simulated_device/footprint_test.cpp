// Footprints against sets of bytes.
#include "support/simulated_device/footprint.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <random>
#include <utility>

namespace mpi4dl::simulated {
namespace {

constexpr size_t kBytes = 1024;

std::bitset<kBytes> bytes_of(int64_t begin, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                             int64_t element) {
  std::bitset<kBytes> bytes;
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j)
      for (int64_t k = 0; k < sizes[2]; ++k)
        for (int64_t b = 0; b < element; ++b)
          bytes.set(begin + (i * strides[0] + j * strides[1] + k * strides[2]) * element + b);
  return bytes;
}

TEST(Footprint, IsWhatATensorOccupies) {
  std::mt19937 random(1);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % end); };
  const auto make = [&] {
    const int64_t begin = below(64), element = 1 << below(3);
    const std::array<int64_t, 3> sizes{1 + below(4), 1 + below(4), 1 + below(4)};
    const std::array<int64_t, 3> strides{below(24), below(12), below(24)};
    return std::pair(Footprint(begin, sizes, strides, element),
                     bytes_of(begin, sizes, strides, element));
  };
  int overlapping = 0, covering = 0;
  for (int i = 0; i < 100000; ++i) {
    const auto [a, bytes_of_a] = make();
    const auto [b, bytes_of_b] = make();
    const bool expected = (bytes_of_a & bytes_of_b).any();
    ASSERT_EQ(a.overlaps(b), expected);
    ASSERT_TRUE(bytes_of_a[a.begin()] && bytes_of_a[a.end() - 1]);
    overlapping += expected;
    if (!a.covers(b)) continue;
    ASSERT_EQ(bytes_of_a & bytes_of_b, bytes_of_b);
    ++covering;
  }
  EXPECT_GT(overlapping, 25000);
  EXPECT_LT(overlapping, 75000);
  EXPECT_GT(covering, 20);
}

}  // namespace
}  // namespace mpi4dl::simulated
