#pragma once

#include <algorithm>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Convolves. Empty stride, padding and dilation mean 1, 0 and 1 on each axis. A value without
/// spatial axes is a map of one pixel.
struct Convolution {
  int64_t out_channels = 1;
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {};
  int64_t groups = 1;
  bool bias = true;
  Extents padding_end = {};  ///< empty: as `padding`

  static constexpr std::string_view kName = "convolution";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = true,
                                          .window = WindowRule::zeros};
  static constexpr std::tuple kFields{Field{"out_channels", &Convolution::out_channels},
                                      Field{"kernel", &Convolution::kernel},
                                      Field{"stride", &Convolution::stride},
                                      Field{"padding", &Convolution::padding},
                                      Field{"dilation", &Convolution::dilation},
                                      Field{"groups", &Convolution::groups},
                                      Field{"bias", &Convolution::bias},
                                      Field{"padding_end", &Convolution::padding_end}};
  Window window(int axis) const {
    return {.kernel = kernel[axis],
            .stride = option_at(stride, axis, 1),
            .padding = option_at(padding, axis, 0),
            .dilation = option_at(dilation, axis, 1),
            .wider_end = wider_end(padding, padding_end, axis)};
  }
  Shape result(const Shapes& inputs) const {
    const Shape& input = only(inputs);
    check_channels(input.channels, out_channels, groups);
    if (!input.spatial()) {
      validate(sees_one_pixel(),
               "without spatial axes there is one pixel, for a kernel of 1 on each axis and no "
               "padding, not a kernel of {} and a padding of {}",
               to_string(kernel), padding.empty() ? "0" : to_string(padding));
      return {out_channels, {}};
    }
    check_kernel(kernel, input);
    check_option("stride", stride, 1, input);
    check_paddings(padding, padding_end, input);
    check_option("dilation", dilation, 1, input);
    return {out_channels, slide(all_windows(*this, input.space.size()), input, kernel)};
  }
  Interval need(const Rows& rows) const { return window(rows.axis).need(rows.outputs); }
  std::vector<Parameter> parameters(const Shapes& inputs) const {
    const int64_t in = inputs[0].channels / groups;
    return weight_and_bias(weight_shape(out_channels, in, kernel), in * positions(kernel), bias,
                           out_channels);
  }
  /// Counts two operations for each weight that an output reads.
  int64_t flops(const NodeWork& work) const {
    return 2 * work.elements() * (work.input.channels / groups) * positions(kernel);
  }
  ForwardMemory forward_memory(const TilePlacement& place) const {
    if (by_kernels(place))
      return {.output = ForwardMemory::Output::halo_buffer,
              .keeps_input = true,
              .workspace_bytes = packed_bytes(place)};
    const std::vector<Window> windows = all_windows(*this, place.needed.axes() - 2);
    const int64_t padded = padded_elements(windows, place);
    const bool copies =
        padded != place.needed.elements() && !place.framed && !symmetric(windows, place);
    return {.keeps_input = !copies, .kept_bytes = copies ? padded * place.element_size : 0};
  }
  /// Libtorch makes two more copies of the weight's gradient on the way; our kernels add where the
  /// sum is, but pack the weights.
  BackwardMemory backward_memory(const TilePlacement& place) const {
    if (by_kernels(place))
      return {.input_bytes = place.bytes(place.needed),
              .parameter_bytes = packed_bytes(place),
              .input_last = true};
    const std::vector<Window> windows = all_windows(*this, place.needed.axes() - 2);
    const int64_t padded = padded_elements(windows, place);
    const bool whole = symmetric(windows, place);
    return {.input_bytes = whole ? place.bytes(place.needed) : padded * place.element_size,
            .gaps = !whole && padded != place.needed.elements(),
            .wants_dense = true,
            .parameter_bytes = 3 * place.parameter_bytes};
  }

 private:
  bool sees_one_pixel() const {
    const auto is_not = [](int64_t number) {
      return [number](int64_t value) { return value != number; };
    };
    return !kernel.empty() && std::ranges::none_of(kernel, is_not(1)) &&
           std::ranges::none_of(padding, is_not(0));
  }
  /// The kernels for images need neither padding nor gradients without gaps.
  bool by_kernels(const TilePlacement& place) const {
    return place.by_image_kernels() && groups == 1;
  }
  static int64_t packed_bytes(const TilePlacement& place) {
    return std::min(place.weight_bytes, kPackedBytes);
  }
};

}  // namespace mpi4dl
