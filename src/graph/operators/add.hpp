#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Adds two or more values of one shape.
struct Add {
  static constexpr std::string_view kName = "add";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none,
                                          .combined = "added"};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const {
    check_several(inputs);
    for (const Shape& shape : inputs)
      validate(shape == inputs.front(), "{} and {} differ", to_string(inputs.front()),
               to_string(shape));
    return inputs.front();
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return (work.inputs - 1) * work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const { return {}; }
  BackwardMemory backward_memory(const TilePlacement& /*place*/) const {
    return {.input = BackwardMemory::Input::gradient};
  }
};

}  // namespace mpi4dl
