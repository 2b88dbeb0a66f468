#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Adds channels of zeros before the first and behind the last, as shortcuts of ResNet's option A
/// do.
struct ChannelPad {
  int64_t before = 0, after = 0;

  static constexpr std::string_view kName = "channel padding";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"before", &ChannelPad::before},
                                      Field{"after", &ChannelPad::after}};
  Shape result(const Shapes& inputs) const {
    Shape shape = only(inputs);
    validate(before >= 0 && after >= 0, "it adds {} and {} channels; neither may be negative",
             before, after);
    shape.channels += before + after;
    return shape;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
