#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes the mean over all pixels; the result has no spatial axes. Each tile contributes the sum of
/// its own.
struct GlobalAvgPool {
  static constexpr std::string_view kName = "global average pooling";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = true,
                                          .pooling = Pooling::messages,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return {only_spatial(inputs).channels, {}}; }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.input.elements() * work.pixels; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  /// The gradient of the input is expanded without memory.
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.computed)};
  }
};

}  // namespace mpi4dl
