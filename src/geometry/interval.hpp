#pragma once

#include <algorithm>
#include <cstdint>

namespace mpi4dl {

/// Interval is a half-open range [begin, end) along one axis of a global tensor.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t length() const { return std::max<int64_t>(end - begin, 0); }
  bool empty() const { return end <= begin; }
  bool contains(const Interval& other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  bool operator==(const Interval&) const = default;
};

/// Returns what both have; empty intervals are always {0, 0}, so that equal sets compare equal.
inline Interval intersect(const Interval& a, const Interval& b) {
  const Interval both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.empty() ? Interval{} : both;
}

/// Returns the smallest interval that contains both.
inline Interval hull(const Interval& a, const Interval& b) {
  if (a.empty()) return b.empty() ? Interval{} : b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// Returns part `index` of [0, length) cut into `parts` balanced pieces; lengths differ by at most
/// one.
inline Interval part(int64_t length, int64_t index, int64_t parts) {
  return {index * length / parts, (index + 1) * length / parts};
}

}  // namespace mpi4dl
