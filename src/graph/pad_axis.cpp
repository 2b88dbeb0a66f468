#include "graph/pad_axis.hpp"

#include <algorithm>

namespace mpi4dl {

Interval PadAxis::kept() const {
  return {std::max<int64_t>(-before, 0), length - std::max<int64_t>(-after, 0)};
}

int64_t PadAxis::source(int64_t output) const {
  const int64_t place = output - before;
  const Interval rows = kept();
  switch (mode) {
    case PadMode::reflect:
      return place < 0 ? -place : std::min(place, 2 * (length - 1) - place);
    case PadMode::replicate:
      return std::clamp<int64_t>(place, 0, length - 1);
    case PadMode::circular:
      if (place < rows.begin) return place + rows.length();
      return place < rows.end ? place : place - rows.length();
    case PadMode::constant:
      break;
  }
  return place;
}

/// Padding before, input and padding behind it are each read in one direction.
Interval PadAxis::need(const Interval& range) const {
  const Interval rows = kept();
  const Interval inner{rows.begin + before, rows.end + before};
  Interval read;
  for (const Interval part :
       {Interval{range.begin, std::min(range.end, inner.begin)}, intersect(range, inner),
        Interval{std::max(range.begin, inner.end), range.end}}) {
    if (part.empty()) continue;
    const auto [low, high] = std::minmax({source(part.begin), source(part.end - 1)});
    read = hull(read, {low, high + 1});
  }
  return intersect(read, {0, length});
}

}  // namespace mpi4dl
