#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Multiplies what is negative by a learned number: one for all channels, or one for each.
struct PRelu {
  int64_t num_parameters = 1;

  static constexpr std::string_view kName = "prelu";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"num_parameters", &PRelu::num_parameters}};
  Shape result(const Shapes& inputs) const {
    const Shape& input = only(inputs);
    validate(num_parameters == 1 || num_parameters == input.channels,
             "it has 1 parameter or one for each of {} channels, not {}", input.channels,
             num_parameters);
    return input;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const {
    return {{.name = "weight", .shape = {num_parameters}, .init = Init::quarters}};
  }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  /// Has what is negative in memory, and the gradients of what is and what is not.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.keeps_input = true, .workspace_bytes = place.bytes(place.computed)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.computed),
            .workspace_bytes = 2 * place.bytes(place.computed),
            .parameter_bytes = place.parameter_bytes};
  }
};

}  // namespace mpi4dl
