#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes means over as many windows as asked for, which lie evenly over the input: window o of n
/// over L pixels is [floor(o L / n), ceil((o + 1) L / n)). Windows overlap where n does not divide
/// L, and repeat pixels where there are more windows than pixels. Where there are fewer of them
/// than tiles, each tile contributes the sums of its own pixels.
struct AdaptiveAvgPool {
  Extents size;

  static constexpr std::string_view kName = "adaptive average pooling";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = true,
                                          .pooling = Pooling::messages,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"size", &AdaptiveAvgPool::size}};
  Shape result(const Shapes& inputs) const {
    const Shape& input = only_spatial(inputs);
    validate(!size.empty(), "it has no size");
    check_option("size", size, 1, input);
    return {input.channels, size};
  }
  Interval need(const Rows& rows) const {
    const int64_t windows = size[rows.axis];
    return {rows.outputs.begin * rows.length / windows,
            ceil_divide(rows.outputs.end * rows.length, windows)};
  }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const {
    return work.elements() * ceil_divide(positions(work.input.space), positions(size));
  }
  /// The sums along one axis come before those along the next.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.workspace_bytes = place.wide_bytes(place.needed)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
