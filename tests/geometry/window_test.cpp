#include "geometry/window.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <vector>

namespace mpi4dl {

static std::ostream& operator<<(std::ostream& out, const Window& window) {
  return out << "kernel " << window.kernel << ", stride " << window.stride << ", padding "
             << window.padding << ", dilation " << window.dilation;
}

namespace {

constexpr int64_t kLongest = 20;

template <typename Check>
void for_all_windows(Check&& check) {
  for (int64_t kernel = 1; kernel <= 5; ++kernel)
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t padding = 0; padding <= 4; ++padding)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
          check(Window{kernel, stride, padding, dilation});
}

/// Returns the positions that one output reads.
std::vector<int64_t> inputs_read(const Window& window, int64_t output) {
  std::vector<int64_t> inputs;
  for (int64_t tap = 0; tap < window.kernel; ++tap)
    inputs.push_back(output * window.stride - window.padding + tap * window.dilation);
  return inputs;
}

/// Counts windows one by one while they lie inside the padded input.
int64_t count_inside(const Window& window, int64_t length) {
  int64_t count = 0;
  while (inputs_read(window, count).back() < length + window.padding) ++count;
  return count;
}

/// Counts by the rule of torch's pooling layers with ceil_mode: one more window where inputs or
/// padding are left over, unless that window would begin behind the input, in the right padding.
/// The only window of a short input may hang over by less than a stride.
int64_t count_with_overhang(const Window& window, int64_t length) {
  const int64_t inside = count_inside(window, length);
  const int64_t overhang = inputs_read(window, 0).back() + 1 - (length + window.padding);
  if (inside == 0) return overhang < window.stride ? 1 : 0;
  const bool left_over = inputs_read(window, inside - 1).back() < length + window.padding - 1;
  const bool begins_before_end = inputs_read(window, inside).front() < length;
  return left_over && begins_before_end ? inside + 1 : inside;
}

TEST(Window, SpansFromFirstToLastInputRead) {
  for_all_windows([](const Window& window) {
    const std::vector<int64_t> inputs = inputs_read(window, 0);
    EXPECT_EQ(window.span(), inputs.back() - inputs.front() + 1) << window;
  });
}

TEST(Window, HasAsManyOutputsAsWindowsFitThePaddedInput) {
  for_all_windows([](const Window& window) {
    for (int64_t length = 1; length <= kLongest; ++length)
      ASSERT_EQ(window.outputs(length), count_inside(window, length))
          << window << ", length " << length;
  });
}

TEST(Window, CeilModeLetsTheLastWindowHangOver) {
  for_all_windows([](const Window& window) {
    for (int64_t length = 1; length <= kLongest; ++length)
      ASSERT_EQ(window.outputs(length, /*ceil_mode=*/true), count_with_overhang(window, length))
          << window << ", length " << length;
  });
}

TEST(Window, NeedReachesFromTheFirstInputReadToTheLast) {
  for_all_windows([](const Window& window) {
    const int64_t outputs = window.outputs(kLongest, /*ceil_mode=*/true);
    for (int64_t begin = 0; begin < outputs; ++begin) {
      Interval read{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
      for (int64_t end = begin + 1; end <= outputs; ++end) {
        for (const int64_t input : inputs_read(window, end - 1))
          read = {std::min(read.begin, input), std::max(read.end, input + 1)};
        ASSERT_EQ(window.need({begin, end}), read) << window << ", [" << begin << "," << end << ")";
      }
    }
  });
}

TEST(Window, NothingNeedsNothing) {
  for_all_windows([](const Window& window) { EXPECT_TRUE(window.need({3, 3}).empty()); });
}

TEST(Window, OfOnePixelIsTheIdentity) {
  EXPECT_EQ(Window{}.outputs(7), 7);
  EXPECT_EQ(Window{}.need({2, 5}), (Interval{2, 5}));
}

}  // namespace
}  // namespace mpi4dl
