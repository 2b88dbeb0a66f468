#pragma once

#include <ATen/ATen.h>

namespace mpi4dl {

/// Returns true where the channels of a pixel are contiguous in memory, as our kernels want them.
/// There may be gaps between pixels and rows.
inline bool is_channels_last(const at::Tensor& images) {
  return images.stride(1) == 1 || images.size(1) == 1;
}

/// Returns a dense channels-last image batch without values.
inline at::Tensor empty_image(at::IntArrayRef shape, c10::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).memory_format(at::MemoryFormat::ChannelsLast));
}

/// Returns the images themselves where they are channels-last, and a copy otherwise: pooling hands
/// back one value for many pixels, or channels one after the other.
inline at::Tensor to_channels_last(const at::Tensor& images) {
  return is_channels_last(images) ? images : images.contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace mpi4dl
