#include "geometry/box.hpp"

#include "base/error.hpp"

namespace mpi4dl {

Box::Box(std::initializer_list<Interval> axes) : axes_(static_cast<int>(axes.size())) {
  ensure(axes.size() <= kMaxAxes, "a box has at most {} axes, not {}", kMaxAxes, axes.size());
  std::copy(axes.begin(), axes.end(), intervals_.begin());
}

Box Box::whole(std::span<const int64_t> shape) {
  Box box = none(static_cast<int>(shape.size()));
  for (int axis = 0; axis < box.axes_; ++axis) box[axis] = {0, shape[axis]};
  return box;
}

Box Box::none(int axes) {
  ensure(axes >= 0 && axes <= kMaxAxes, "a box has at most {} axes, not {}", kMaxAxes, axes);
  Box box;
  box.axes_ = axes;
  return box;
}

bool Box::empty() const {
  for (int axis = 0; axis < axes_; ++axis)
    if (intervals_[axis].empty()) return true;
  return axes_ == 0;
}

int64_t Box::elements() const {
  if (axes_ == 0) return 0;
  int64_t product = 1;
  for (int axis = 0; axis < axes_; ++axis) product *= intervals_[axis].length();
  return product;
}

std::vector<int64_t> Box::shape() const {
  std::vector<int64_t> lengths(axes_);
  for (int axis = 0; axis < axes_; ++axis) lengths[axis] = intervals_[axis].length();
  return lengths;
}

bool Box::contains(const Box& other) const {
  if (other.empty()) return true;
  if (axes_ != other.axes_) return false;
  for (int axis = 0; axis < axes_; ++axis)
    if (!intervals_[axis].contains(other[axis])) return false;
  return true;
}

bool Box::operator==(const Box& other) const {
  if (axes_ != other.axes_) return false;
  for (int axis = 0; axis < axes_; ++axis)
    if (intervals_[axis] != other[axis]) return false;
  return true;
}

Box intersect(const Box& a, const Box& b) {
  if (a.axes() != b.axes()) return Box::none(std::max(a.axes(), b.axes()));
  Box both = Box::none(a.axes());
  for (int axis = 0; axis < a.axes(); ++axis) {
    both[axis] = intersect(a[axis], b[axis]);
    if (both[axis].empty()) return Box::none(a.axes());
  }
  return both;
}

Box hull(const Box& a, const Box& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Box around = Box::none(a.axes());
  for (int axis = 0; axis < a.axes(); ++axis) around[axis] = hull(a[axis], b[axis]);
  return around;
}

std::vector<Box> difference(const Box& whole, const Box& inner) {
  std::vector<Box> pieces;
  Box rest = whole;
  const auto add = [&](Box piece, int axis, const Interval& interval) {
    piece[axis] = interval;
    if (!piece.empty()) pieces.push_back(piece);
  };
  for (int axis = 0; axis < whole.axes(); ++axis) {
    add(rest, axis, {rest[axis].begin, inner[axis].begin});
    add(rest, axis, {inner[axis].end, rest[axis].end});
    rest[axis] = inner[axis];
  }
  return pieces;
}

std::string to_string(const Box& box) {
  std::string text;
  for (int axis = 0; axis < box.axes(); ++axis)
    text += fmt::format("{}[{},{})", axis == 0 ? "" : "x", box[axis].begin, box[axis].end);
  return text;
}

}  // namespace mpi4dl
