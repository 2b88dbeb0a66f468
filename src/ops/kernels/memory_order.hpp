#pragma once

#include <ATen/ATen.h>

namespace mpi4dl {

/// The numbers of a pixel follow each other in memory, as our kernels want them.
inline bool channels_side_by_side(const at::Tensor& images) {
  return images.stride(1) == 1 || images.size(1) == 1;
}

inline at::Tensor empty_image(at::IntArrayRef shape, c10::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).memory_format(at::MemoryFormat::ChannelsLast));
}

/// The images themselves where they are so, and a copy otherwise: pooling hands back one number for
/// many pixels, or channels one after the other.
inline at::Tensor with_channels_side_by_side(const at::Tensor& images) {
  return channels_side_by_side(images) ? images : images.contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace mpi4dl
