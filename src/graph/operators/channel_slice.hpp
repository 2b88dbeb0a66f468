#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes the channels [begin, end) of a value.
struct ChannelSlice {
  int64_t begin = 0, end = 1;

  static constexpr std::string_view kName = "channel slice";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"begin", &ChannelSlice::begin},
                                      Field{"end", &ChannelSlice::end}};
  Shape result(const Shapes& inputs) const {
    Shape shape = only(inputs);
    validate(0 <= begin && begin < end && end <= shape.channels,
             "its channels [{}, {}) are not within those of {}", begin, end, to_string(shape));
    shape.channels = end - begin;
    return shape;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
