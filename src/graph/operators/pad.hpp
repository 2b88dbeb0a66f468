#pragma once

#include <algorithm>

#include "base/error.hpp"
#include "graph/pad_axis.hpp"

namespace mpi4dl {

/// Adds rows around an image, as PyTorch's `pad` does: a value, or the image's own rows. Negative
/// numbers cut rows off.
struct Pad {
  Extents before = {}, after = {};
  PadMode mode = PadMode::constant;
  double value = 0;  ///< of constant padding; may be infinite

  static constexpr std::string_view kName = "padding";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"before", &Pad::before}, Field{"after", &Pad::after},
                                      Field{"mode", &Pad::mode}, Field{"value", &Pad::value}};
  /// Says what happens along an axis of this length.
  PadAxis along(int axis, int64_t length) const {
    return {length, option_at(before, axis, 0), option_at(after, axis, 0), mode};
  }
  Shape result(const Shapes& inputs) const {
    const Shape& input = only_spatial(inputs);
    check_option("padding before", before, kLowest, input);
    check_option("padding after", after, kLowest, input);
    Shape shape{input.channels, {}};
    for (size_t axis = 0; axis < input.space.size(); ++axis) {
      const PadAxis padded = along(static_cast<int>(axis), input.space[axis]);
      check_axis(padded);
      shape.space.push_back(padded.outputs());
    }
    return shape;
  }
  Interval need(const Rows& rows) const { return along(rows.axis, rows.length).need(rows.outputs); }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }

 private:
  static constexpr int64_t kLowest = -(int64_t{1} << 30);

  /// Throws where nothing is left of an axis, and where its own rows do not suffice.
  static void check_axis(const PadAxis& axis) {
    validate(!axis.kept().empty(), "it cuts off {} and {} of {} pixels", -axis.before, -axis.after,
             axis.length);
    const int64_t widest = std::max(axis.before, axis.after);
    validate(axis.mode != PadMode::reflect || widest < axis.length,
             "its padding {} must be smaller than the {} pixels that it reflects", widest,
             axis.length);
    validate(axis.mode != PadMode::circular || widest <= axis.kept().length(),
             "its padding {} must be at most the {} pixels that it repeats", widest,
             axis.kept().length());
  }
};

}  // namespace mpi4dl
