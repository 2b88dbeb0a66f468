#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "geometry/interval.hpp"

namespace mpi4dl {

/// Box is a tensor's place: one interval per axis of a global tensor.
///
/// Axes are N, C, then the spatial ones, [D,] H, W. Two axes (N, C) describe values without
/// spatial extent, four an image, five a volume.
class Box {
 public:
  static constexpr int kMaxAxes = 5;

  Box() = default;
  Box(std::initializer_list<Interval> axes);
  /// Returns the whole of a tensor with this shape.
  static Box whole(std::span<const int64_t> shape);
  /// Returns a box with `axes` axes and no element.
  static Box none(int axes);

  int axes() const { return axes_; }
  const Interval& operator[](int axis) const { return intervals_[axis]; }
  Interval& operator[](int axis) { return intervals_[axis]; }

  bool empty() const;
  int64_t elements() const;
  std::vector<int64_t> shape() const;
  bool contains(const Box& other) const;
  bool operator==(const Box& other) const;

 private:
  std::array<Interval, kMaxAxes> intervals_{};
  int axes_ = 0;
};

/// Returns what both have; where that is nothing, every axis is empty.
Box intersect(const Box& a, const Box& b);

/// Returns the smallest box that contains both.
Box hull(const Box& a, const Box& b);

/// Returns what `whole` has beyond `inner`, which lies inside it: boxes that do not overlap.
std::vector<Box> difference(const Box& whole, const Box& inner);

/// Returns, for example, "[0,1)x[0,64)x[0,512)x[512,1024)".
std::string to_string(const Box& box);

}  // namespace mpi4dl
