#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

struct Identity {
  static constexpr std::string_view kName = "identity";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple<> kFields{};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& /*work*/) const { return 0; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.output = ForwardMemory::Output::input};
  }
  BackwardMemory backward_memory(const TilePlacement& /*place*/) const {
    return {.input = BackwardMemory::Input::gradient};
  }
};

}  // namespace mpi4dl
