#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Normalises the channels of each pixel by themselves: layer norm over channels.
struct ChannelNorm {
  double eps = 1e-5;
  bool affine = true;

  static constexpr std::string_view kName = "channel norm";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"eps", &ChannelNorm::eps},
                                      Field{"affine", &ChannelNorm::affine}};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    return affine ? scale_and_shift(inputs[0].channels) : std::vector<Parameter>{};
  }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements(); }
  /// Keeps the mean and deviation of each pixel.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.keeps_input = true,
            .kept_bytes = 2 * place.bytes(place.computed) / place.computed[1].length(),
            .workspace_bytes = place.framed ? place.bytes(place.needed) : 0};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.computed),
            .workspace_bytes = place.framed ? place.bytes(place.needed) : 0,
            .parameter_bytes = place.parameter_bytes};
  }
};

}  // namespace mpi4dl
