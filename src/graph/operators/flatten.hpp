#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Puts all elements of an image in a row.
struct Flatten {
  static constexpr std::string_view kName = "flatten";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return {only(inputs).elements(), {}}; }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
