#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Input is the image that a graph begins with. It is given, not computed.
struct Input {
  Shape shape;

  static constexpr std::string_view kName = "input";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"shape", &Input::shape}};
  Shape result(const Shapes& inputs) const {
    validate(inputs.empty(), "the input of a graph has no inputs itself");
    validate(shape.channels >= 1, "an image needs at least 1 channel, not {}", shape.channels);
    validate(shape.space.size() == 2 || shape.space.size() == 3,
             "an image has 2 spatial axes and a volume 3, not {}", shape.space.size());
    for (const int64_t length : shape.space)
      validate(length >= 1, "an image of {} has no pixels", to_string(shape.space));
    return shape;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& /*place*/) const { return {}; }
};

}  // namespace mpi4dl
