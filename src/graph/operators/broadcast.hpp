#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Puts a value without spatial extent at every pixel of a map of this size: so a pooled value
/// comes back beside others, as ASPP's image branch does.
struct Broadcast {
  Extents space;

  static constexpr std::string_view kName = "broadcast";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"space", &Broadcast::space}};
  Shape result(const Shapes& inputs) const {
    validate(!only(inputs).spatial(), "it needs an input without spatial axes");
    validate(space.size() == 2 || space.size() == 3, "its size {} needs 2 or 3 spatial axes",
             to_string(space));
    for (const int64_t length : space)
      validate(length >= 1, "its size {} has no pixels", to_string(space));
    return {inputs[0].channels, space};
  }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
