#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Normalises each group of channels over the pixels of an image, whatever tiles it has. No groups
/// stand for one of each channel, which is instance norm.
struct GroupNorm {
  int64_t groups = 1;
  double eps = 1e-5;
  bool affine = true;

  static constexpr std::string_view kName = "group norm";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = true,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"groups", &GroupNorm::groups},
                                      Field{"eps", &GroupNorm::eps},
                                      Field{"affine", &GroupNorm::affine}};
  Shape result(const Shapes& inputs) const {
    const Shape& input = only(inputs);
    validate(groups >= 0 && input.channels % groups_of(input.channels) == 0,
             "its {} groups must divide the {} channels", groups, input.channels);
    return input;
  }
  int64_t groups_of(int64_t channels) const { return groups == 0 ? channels : groups; }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    return affine ? scale_and_shift(inputs[0].channels) : std::vector<Parameter>{};
  }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.keeps_input = true};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.computed),
            .workspace_bytes = place.bytes(place.computed) + place.bytes(place.owned),
            .parameter_bytes = place.parameter_bytes};
  }
};

}  // namespace mpi4dl
