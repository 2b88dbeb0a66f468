#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/expects.hpp"

namespace mpi4dl {

/// Walks channels-last tensors of one shape (N, C, [D,] H, W) together in runs of pixels
/// that are equally far apart in memory. Dense tensors are one run; a view into a padded buffer,
/// with its margins left out, has one run a row.
template <size_t count>
class PixelRuns {
 public:
  using Offsets = std::array<int64_t, count>;  // in elements, one for each tensor

  explicit PixelRuns(const std::array<at::Tensor, count>& tensors) : channels_(tensors[0].size(1)) {
    for (size_t i = 0; kChecked && i < count; ++i)
      expects(
          tensors[i].sizes() == tensors[0].sizes() && (channels_ <= 1 || tensors[i].stride(1) == 1),
          "tensors have one shape and are channels-last");
    for (int64_t axis = tensors[0].dim() - 1; axis >= 0; --axis)
      if (axis != 1) add_axis(tensors, axis);
    if (axes_ == 0) {  // a single pixel
      length_[axes_] = 1;
      stride_[axes_++].fill(channels_);
    }
    for (int axis = 0; axis < axes_; ++axis) pixels_ *= length_[axis];
  }

  int64_t channels() const { return channels_; }
  int64_t pixels() const { return pixels_; }
  /// Returns the distance from one pixel of a run to the next.
  const Offsets& stride() const { return stride_[0]; }
  /// Returns true where the pixels of a run follow each other without a gap in every tensor.
  bool gapless() const {
    return std::all_of(stride_[0].begin(), stride_[0].end(),
                       [this](int64_t stride) { return stride == channels_; });
  }

  /// Calls `run(offsets, pixels)` for the pixels [begin, end), in order.
  template <typename Run>
  void visit(int64_t begin, int64_t end, Run&& run) const {
    while (begin < end) {
      Offsets offsets{};
      int64_t rest = begin;
      for (int axis = 0; axis < axes_; ++axis) {
        const int64_t place = rest % length_[axis];
        rest /= length_[axis];
        for (size_t i = 0; i < count; ++i) offsets[i] += place * stride_[axis][i];
      }
      const int64_t pixels = std::min(end - begin, length_[0] - begin % length_[0]);
      run(offsets, pixels);
      begin += pixels;
    }
  }

 private:
  static constexpr int kMaxAxes = 4;

  /// Adds an axis, from the inside out; one that continues the axis inside it joins it.
  void add_axis(const std::array<at::Tensor, count>& tensors, int64_t axis) {
    const int64_t length = tensors[0].size(axis);
    if (length == 1) return;
    Offsets stride{};
    for (size_t i = 0; i < count; ++i) stride[i] = tensors[i].stride(axis);
    bool continues = axes_ > 0;
    for (size_t i = 0; i < count && continues; ++i)
      continues = stride[i] == stride_[axes_ - 1][i] * length_[axes_ - 1];
    if (continues) {
      length_[axes_ - 1] *= length;
    } else {
      length_[axes_] = length;
      stride_[axes_++] = stride;
    }
  }

  int64_t channels_;
  int64_t pixels_ = 1;
  int axes_ = 0;
  std::array<int64_t, kMaxAxes> length_{};
  std::array<Offsets, kMaxAxes> stride_{};
};

}  // namespace mpi4dl
