#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Makes a square of pixels, `factor` wide, of the channels of each pixel.
struct PixelShuffle {
  int64_t factor = 2;

  static constexpr std::string_view kName = "pixel shuffle";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"factor", &PixelShuffle::factor}};
  Shape result(const Shapes& inputs) const {
    Shape shape = only_spatial(inputs);
    validate(shape.space.size() == 2, "it needs 2 spatial axes, not {}", shape.space.size());
    validate(factor >= 1 && shape.channels % (factor * factor) == 0,
             "the square of its factor {} must divide the {} channels", factor, shape.channels);
    shape.channels /= factor * factor;
    for (int64_t& length : shape.space) length *= factor;
    return shape;
  }
  Interval need(const Rows& rows) const {
    return {rows.outputs.begin / factor, (rows.outputs.end - 1) / factor + 1};
  }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
