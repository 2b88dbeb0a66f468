#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Joins values along channels: one, several, or one several times.
struct Concat {
  static constexpr std::string_view kName = "concat";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none,
                                          .combined = "concatenated"};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const {
    validate(!inputs.empty(), "it needs at least 1 input, not 0");
    Shape joined{0, inputs.front().space};
    for (const Shape& shape : inputs) {
      validate(shape.space == joined.space, "only the channels of {} and {} may differ",
               to_string(inputs.front()), to_string(shape));
      joined.channels += shape.channels;
    }
    return joined;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& /*place*/) const {
    return {.input = BackwardMemory::Input::gradient};
  }
};

}  // namespace mpi4dl
