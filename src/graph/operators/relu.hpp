#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

struct Relu {
  static constexpr std::string_view kName = "relu";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.output = ForwardMemory::Output::halo_buffer, .keeps_output = true};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
