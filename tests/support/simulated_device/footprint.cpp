#include "support/simulated_device/footprint.hpp"

#include <algorithm>

namespace mpi4dl::simulated {

Footprint::Footprint(Address begin, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                     int64_t element)
    : begin_(begin), end_(begin), run_(element) {
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] > 1 && strides[axis] != 0)
      axes_.push_back({sizes[axis], strides[axis] * element});
  std::ranges::sort(axes_, std::greater(), &Axis::step);
  while (!axes_.empty() && axes_.back().step <= run_) {  // it lengthens the run
    run_ += axes_.back().step * (axes_.back().count - 1);
    axes_.pop_back();
  }
  end_ += run_;
  for (const Axis& axis : axes_) end_ += axis.step * (axis.count - 1);
}

int64_t Footprint::runs() const {
  int64_t runs = 1;
  for (const Axis& axis : axes_) runs *= axis.count;
  return runs;
}

/// Looks at the runs from `here`, of the axes from `axis` on: among their steps only at those that
/// can reach the other bytes.
bool Footprint::overlaps_run(Address begin, Address end, size_t axis, Address here) const {
  if (axis == axes_.size()) return here < end && begin < here + run_;
  const auto [count, step] = axes_[axis];
  int64_t inner = run_;
  for (size_t a = axis + 1; a < axes_.size(); ++a) inner += axes_[a].step * (axes_[a].count - 1);
  const auto before = static_cast<int64_t>(begin) - static_cast<int64_t>(here) - inner;
  const auto after = static_cast<int64_t>(end) - static_cast<int64_t>(here) - 1;
  const int64_t first = before < 0 ? 0 : before / step + 1;
  const int64_t last = after < 0 ? -1 : std::min(count - 1, after / step);
  for (int64_t i = first; i <= last; ++i)
    if (overlaps_run(begin, end, axis + 1, here + i * step)) return true;
  return false;
}

bool Footprint::any_run_overlaps(const Footprint& other, size_t axis, Address here) const {
  if (axis == axes_.size()) return other.overlaps_run(here, here + run_, 0, other.begin_);
  for (int64_t i = 0; i < axes_[axis].count; ++i)
    if (any_run_overlaps(other, axis + 1, here + i * axes_[axis].step)) return true;
  return false;
}

bool Footprint::overlaps(const Footprint& other) const {
  if (begin_ >= other.end_ || other.begin_ >= end_) return false;
  return runs() <= other.runs() ? any_run_overlaps(other, 0, begin_)
                                : other.any_run_overlaps(*this, 0, other.begin_);
}

bool Footprint::covers(const Footprint& other) const {
  if (axes_.empty()) return begin_ <= other.begin_ && other.end_ <= end_;
  return begin_ == other.begin_ && run_ == other.run_ && axes_ == other.axes_;
}

}  // namespace mpi4dl::simulated
