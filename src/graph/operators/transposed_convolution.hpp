#pragma once

#include <algorithm>

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Convolves transposed: input i writes outputs i*stride - padding + {0, ..., kernel-1}*dilation.
struct TransposedConvolution {
  int64_t out_channels = 1;
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {}, output_padding = {};
  int64_t groups = 1;
  bool bias = true;

  static constexpr std::string_view kName = "transposed convolution";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::transposed};
  static constexpr std::tuple kFields{
      Field{"out_channels", &TransposedConvolution::out_channels},
      Field{"kernel", &TransposedConvolution::kernel},
      Field{"stride", &TransposedConvolution::stride},
      Field{"padding", &TransposedConvolution::padding},
      Field{"dilation", &TransposedConvolution::dilation},
      Field{"output_padding", &TransposedConvolution::output_padding},
      Field{"groups", &TransposedConvolution::groups},
      Field{"bias", &TransposedConvolution::bias}};
  Shape result(const Shapes& inputs) const {
    const Shape& input = only_spatial(inputs);
    check_kernel(kernel, input);
    check_option("stride", stride, 1, input);
    check_option("padding", padding, 0, input);
    check_option("dilation", dilation, 1, input);
    check_option("output padding", output_padding, 0, input);
    check_output_padding();
    check_channels(input.channels, out_channels, groups);
    Shape shape{out_channels, {}};
    for (int axis = 0; axis < static_cast<int>(input.space.size()); ++axis)
      shape.space.push_back((input.space[axis] - 1) * option_at(stride, axis, 1) -
                            2 * option_at(padding, axis, 0) + span(axis) +
                            option_at(output_padding, axis, 0) + 1);
    for (const int64_t length : shape.space)
      validate(length >= 1, "its padding {} leaves nothing of the result", to_string(padding));
    return shape;
  }
  Interval need(const Rows& rows) const {
    const int64_t step = option_at(stride, rows.axis, 1), shift = option_at(padding, rows.axis, 0);
    const Interval inputs{ceil_divide(rows.outputs.begin + shift - span(rows.axis), step),
                          floor_divide(rows.outputs.end - 1 + shift, step) + 1};
    return intersect(inputs, {0, rows.length});
  }
  /// torch takes the second axis of any weight for its inputs, here the outputs of a group.
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    const int64_t out = out_channels / groups;
    return weight_and_bias(weight_shape(inputs[0].channels, out, kernel), out * positions(kernel),
                           bias, out_channels);
  }
  /// Each input position feeds every tap of the kernel; an output position has its share of that.
  /// The product of the exact numbers would overflow for large images.
  int64_t flops(const NodeWork& work) const {
    const int64_t total = 2 * work.input.elements() * (out_channels / groups) * positions(kernel);
    const double share =
        static_cast<double>(work.pixels) / static_cast<double>(positions(work.result.space));
    return static_cast<int64_t>(static_cast<double>(total) * share);
  }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.keeps_input = true};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }

 private:
  /// Returns the distance from the first to the last output that an input writes.
  int64_t span(int axis) const { return option_at(dilation, axis, 1) * (kernel[axis] - 1); }
  /// Throws where torch does: more output padding would make rows that no input can reach.
  void check_output_padding() const {
    for (int axis = 0; axis < static_cast<int>(output_padding.size()); ++axis)
      validate(
          output_padding[axis] < std::max(option_at(stride, axis, 1), option_at(dilation, axis, 1)),
          "its output padding {} must be smaller than its stride or its dilation",
          to_string(output_padding));
  }
};

}  // namespace mpi4dl
