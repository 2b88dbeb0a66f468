#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Makes the channels of each pixel positive with a sum of 1: exp(x) divided by its sum.
struct ChannelSoftmax {
  static constexpr std::string_view kName = "channel softmax";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.keeps_output = true, .workspace_bytes = place.framed ? place.bytes(place.needed) : 0};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
