#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Convolves the channels of a pooled value, one after the other, with zeros beyond the first and
/// the last one, as efficient channel attention does. There are as many of them afterwards.
struct ChannelConvolution {
  int64_t kernel = 3;
  bool bias = false;

  static constexpr std::string_view kName = "channel convolution";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"kernel", &ChannelConvolution::kernel},
                                      Field{"bias", &ChannelConvolution::bias}};
  Shape result(const Shapes& inputs) const {
    validate(!only(inputs).spatial(), "it needs an input without spatial axes; pool it first");
    validate(kernel >= 1 && kernel % 2 == 1, "its kernel must be odd, not {}", kernel);
    return inputs[0];
  }
  Interval need(const Rows& rows) const { return {0, rows.length}; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const {
    return weight_and_bias({1, 1, kernel}, kernel, bias, 1);
  }
  int64_t flops(const NodeWork& work) const { return 2 * work.elements() * kernel; }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.keeps_input = true};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
};

}  // namespace mpi4dl
