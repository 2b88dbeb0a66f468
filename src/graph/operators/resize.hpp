#pragma once

#include "base/error.hpp"
#include "graph/resampling.hpp"

namespace mpi4dl {

/// Resamples every spatial axis, as PyTorch's `interpolate` does without antialiasing: to a size,
/// or by a factor for each axis. Bilinear mode is trilinear for volumes.
struct Resize {
  Extents space = {};
  std::vector<double> factor = {};
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;

  static constexpr std::string_view kName = "resize";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{
      Field{"space", &Resize::space}, Field{"factor", &Resize::factor},
      Field{"mode", &Resize::mode}, Field{"align_corners", &Resize::align_corners}};
  /// Says what happens along an axis of this length.
  Resampling resampling(int axis, int64_t length) const {
    Resampling resampling{.inputs = length, .mode = mode, .align_corners = align_corners};
    if (!factor.empty()) resampling.factor = factor[axis];
    resampling.outputs = factor.empty()
                             ? space[axis]
                             : static_cast<int64_t>(static_cast<double>(length) * factor[axis]);
    return resampling;
  }
  Shape result(const Shapes& inputs) const {
    const Shape& input = only_spatial(inputs);
    check_options(input);
    Shape shape{input.channels, {}};
    for (size_t axis = 0; axis < input.space.size(); ++axis)
      shape.space.push_back(resampling(static_cast<int>(axis), input.space[axis]).outputs);
    for (const int64_t length : shape.space)
      validate(length >= 1, "its result would have {} pixels", to_string(shape.space));
    return shape;
  }
  Interval need(const Rows& rows) const {
    return resampling(rows.axis, rows.length).need(rows.outputs);
  }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  /// Counts a multiply-add for each pixel that an output is mixed from.
  int64_t flops(const NodeWork& work) const {
    const int64_t taps = Resampling{.mode = mode}.taps();
    return taps == 1 ? 0 : 2 * work.elements() * positions(Extents(work.input.space.size(), taps));
  }
  /// Axes are resampled one after the other, by a few passes over the values.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.workspace_bytes = place.wide_bytes(place.computed)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.needed),
            .workspace_bytes = place.wide_bytes(place.computed)};
  }

 private:
  static constexpr double kLongest = 0x1p46;  // beyond any image

  void check_options(const Shape& input) const {
    validate(space.empty() != factor.empty(), "it needs either a size or a factor");
    check_option("size", space, 1, input);
    validate(factor.empty() || factor.size() == input.space.size(),
             "its factor needs one number for each of {} spatial axes, not {}", input.space.size(),
             factor.size());
    for (size_t axis = 0; axis < factor.size(); ++axis)
      validate(
          factor[axis] > 0 && factor[axis] * static_cast<double>(input.space[axis]) <= kLongest,
          "its factor must be positive and fit an axis of {} pixels, unlike {}", input.space[axis],
          factor[axis]);
    validate(mode != Interpolation::bicubic || input.space.size() == 2,
             "bicubic interpolation needs 2 spatial axes, not {}", input.space.size());
    validate(!align_corners || Resampling{.mode = mode}.taps() > 1,
             "only bilinear and bicubic interpolation can align corners");
  }
};

}  // namespace mpi4dl
