#pragma once

#include "graph/definition.hpp"

namespace mpi4dl {

/// Averages windows of pixels. An empty stride means the kernel.
struct AvgPool {
  Extents kernel;
  Extents stride = {}, padding = {};
  bool ceil_mode = false;
  bool count_include_pad = true;
  Extents padding_end = {};  ///< empty: as `padding`

  static constexpr std::string_view kName = "average pooling";
  static constexpr Properties kProperties{.pointwise = false,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::applied};
  static constexpr std::tuple kFields{Field{"kernel", &AvgPool::kernel},
                                      Field{"stride", &AvgPool::stride},
                                      Field{"padding", &AvgPool::padding},
                                      Field{"ceil_mode", &AvgPool::ceil_mode},
                                      Field{"count_include_pad", &AvgPool::count_include_pad},
                                      Field{"padding_end", &AvgPool::padding_end}};
  Window window(int axis) const {
    return {.kernel = kernel[axis],
            .stride = option_at(stride, axis, kernel[axis]),
            .padding = option_at(padding, axis, 0),
            .wider_end = wider_end(padding, padding_end, axis)};
  }
  Shape result(const Shapes& inputs) const { return pooled(*this, inputs); }
  Interval need(const Rows& rows) const { return window(rows.axis).need(rows.outputs); }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements() * positions(kernel); }
  ForwardMemory forward_memory(const TilePlacement& place) const {
    if (place.by_image_kernels()) return {};
    const int64_t padded = padded_elements(all_windows(*this, kernel.size()), place);
    const int64_t copy = padded == place.needed.elements() ? 0 : padded * place.element_size;
    return {.workspace_bytes = copy + place.bytes(place.computed)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    if (place.by_image_kernels()) {
      const int64_t along_rows =
          place.bytes(place.computed) / place.computed[3].length() * place.needed[3].length();
      return {.input_bytes = place.bytes(place.needed), .workspace_bytes = along_rows};
    }
    const int64_t padded = padded_elements(all_windows(*this, kernel.size()), place);
    return {.input_bytes = padded * place.element_size,
            .gaps = padded != place.needed.elements(),
            .workspace_bytes = place.bytes(place.computed) + padded * place.element_size};
  }
};

}  // namespace mpi4dl
