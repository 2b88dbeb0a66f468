#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes the largest of all pixels; the result has no spatial axes. Where several are equal, the
/// first of the whole image has the gradient, whichever tile it is on.
struct GlobalMaxPool {
  static constexpr std::string_view kName = "global max pooling";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = true,
                                          .pooling = Pooling::reduction,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return {only_spatial(inputs).channels, {}}; }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.input.elements() * work.pixels; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
