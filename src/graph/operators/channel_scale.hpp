#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Multiplies each channel by a learned number, as LayerScale does, and adds another to it; or all
/// channels by one number.
struct ChannelScale {
  bool bias = false;
  bool shared = false;  ///< one number for all channels

  static constexpr std::string_view kName = "channel scale";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"bias", &ChannelScale::bias},
                                      Field{"shared", &ChannelScale::shared}};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    std::vector<Parameter> all = scale_and_shift(shared ? 1 : inputs[0].channels);
    if (!bias) all.pop_back();
    return all;
  }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  /// The backend does what it does for a batch norm.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.output = ForwardMemory::Output::halo_buffer,
            .keeps_input = true,
            .workspace_bytes = place.composed ? 2 * place.wide_bytes(place.computed) : 0};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input = BackwardMemory::Input::in_place,
            .input_bytes = place.bytes(place.computed),
            .workspace_bytes = place.composed ? 3 * place.wide_bytes(place.computed) : 0,
            .parameter_bytes = place.parameter_bytes};
  }
};

}  // namespace mpi4dl
