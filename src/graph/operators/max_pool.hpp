#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Takes the largest pixel of each window. An empty stride means the kernel.
struct MaxPool {
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {};
  bool ceil_mode = false;
  Extents padding_end = {};  ///< empty: as `padding`

  static constexpr std::string_view kName = "max pooling";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::applied};
  static constexpr std::tuple kFields{
      Field{"kernel", &MaxPool::kernel},       Field{"stride", &MaxPool::stride},
      Field{"padding", &MaxPool::padding},     Field{"dilation", &MaxPool::dilation},
      Field{"ceil_mode", &MaxPool::ceil_mode}, Field{"padding_end", &MaxPool::padding_end}};
  Window window(int axis) const {
    return {.kernel = kernel[axis],
            .stride = option_at(stride, axis, kernel[axis]),
            .padding = option_at(padding, axis, 0),
            .dilation = option_at(dilation, axis, 1),
            .wider_end = wider_end(padding, padding_end, axis)};
  }
  Shape result(const Shapes& inputs) const {
    check_option("dilation", dilation, 1, only_spatial(inputs));
    return pooled(*this, inputs);
  }
  Interval need(const Rows& rows) const { return window(rows.axis).need(rows.outputs); }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements() * positions(kernel); }
  /// Keeps where the largest pixel of each output was.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    const int64_t padded = padded_elements(all_windows(*this, kernel.size()), place);
    const bool copies = padded != place.needed.elements();
    const int64_t indices = place.computed.elements() * static_cast<int64_t>(sizeof(int64_t));
    return {.keeps_input = !copies,
            .kept_bytes = indices + (copies ? padded * place.element_size : 0)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    const int64_t padded = padded_elements(all_windows(*this, kernel.size()), place);
    return {.input_bytes = padded * place.element_size,
            .gaps = padded != place.needed.elements(),
            .wants_dense = true};
  }
};

}  // namespace mpi4dl
