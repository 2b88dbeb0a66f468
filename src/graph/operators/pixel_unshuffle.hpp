#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Makes channels of each square of pixels, `factor` wide: the inverse of a pixel shuffle.
struct PixelUnshuffle {
  int64_t factor = 2;

  static constexpr std::string_view kName = "pixel unshuffle";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"factor", &PixelUnshuffle::factor}};
  Shape result(const Shapes& inputs) const {
    Shape shape = only_spatial(inputs);
    validate(shape.space.size() == 2, "it needs 2 spatial axes, not {}", shape.space.size());
    validate(factor >= 1, "its factor must be at least 1, not {}", factor);
    for (int64_t& length : shape.space) {
      validate(length % factor == 0, "its factor {} must divide height and width of {}", factor,
               to_string(inputs[0]));
      length /= factor;
    }
    shape.channels *= factor * factor;
    return shape;
  }
  Interval need(const Rows& rows) const {
    return {rows.outputs.begin * factor, rows.outputs.end * factor};
  }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
