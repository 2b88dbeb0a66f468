#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Normalises each channel over all pixels of all tiles, whatever the layout. With `affine` each
/// then has a learned scale and shift.
struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;
  bool frozen = false;  ///< normalises by the running statistics, which stay, in training too

  static constexpr std::string_view kName = "batch norm";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = true,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{
      Field{"eps", &BatchNorm::eps}, Field{"momentum", &BatchNorm::momentum},
      Field{"affine", &BatchNorm::affine}, Field{"frozen", &BatchNorm::frozen}};
  Shape result(const Shapes& inputs) const { return only(inputs); }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    const int64_t channels = inputs[0].channels;
    std::vector<Parameter> all = affine ? scale_and_shift(channels) : std::vector<Parameter>{};
    const auto add = [&](const char* name, Init init) {
      all.push_back({.name = name,
                     .shape = {channels},
                     .init = init,
                     .kind = ParameterKind::statistic,
                     .momentum = momentum});
    };
    add("running_mean", Init::zeros);
    add("running_var", Init::ones);
    return all;
  }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements(); }
  /// Libtorch's operators have the map before the ReLU and behind it in memory, beside the output.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    return {.output = ForwardMemory::Output::halo_buffer,
            .keeps_input = true,
            .workspace_bytes = place.composed ? 2 * place.wide_bytes(place.computed) : 0};
  }
  /// They also have what the ReLU let pass, xhat, and the product of the two.
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input = BackwardMemory::Input::in_place,
            .input_bytes = place.bytes(place.computed),
            .workspace_bytes = place.composed ? 3 * place.wide_bytes(place.computed) : 0,
            .parameter_bytes = place.parameter_bytes};
  }
};

}  // namespace mpi4dl
