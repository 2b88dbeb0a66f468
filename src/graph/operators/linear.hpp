#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

struct Linear {
  int64_t out_features = 1;
  bool bias = true;

  static constexpr std::string_view kName = "linear";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"out_features", &Linear::out_features},
                                      Field{"bias", &Linear::bias}};
  Shape result(const Shapes& inputs) const {
    validate(!only(inputs).spatial(),
             "it needs an input without spatial axes; flatten it or pool it globally first");
    validate(out_features >= 1, "it needs at least 1 output feature, not {}", out_features);
    return {out_features, {}};
  }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    const int64_t in = inputs[0].channels;
    return weight_and_bias({out_features, in}, in, bias, out_features);
  }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements() * work.input.channels; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.keeps_input = true};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
