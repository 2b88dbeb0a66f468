#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes channels from groups in turn: the first of each group, then the second of each, and so on.
struct ChannelShuffle {
  int64_t groups = 1;

  static constexpr std::string_view kName = "channel shuffle";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"groups", &ChannelShuffle::groups}};
  Shape result(const Shapes& inputs) const {
    const Shape& input = only(inputs);
    validate(groups >= 1 && input.channels % groups == 0,
             "its {} groups must divide the {} channels", groups, input.channels);
    return input;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
