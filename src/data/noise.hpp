#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "geometry/box.hpp"

namespace mpi4dl {

/// Random pixels in [-1, 1) of a box of a batch of images. They depend on seed and global position
/// alone, so every layout sees the same images and none ever builds a whole one.
at::Tensor noise_pixels(const Box& box, std::span<const int64_t> whole, uint64_t seed,
                        c10::ScalarType type);

/// The random class of one image.
int64_t noise_label(int64_t image, int64_t classes, uint64_t seed);

/// Those of the images [begin, end) of a batch, as int64.
at::Tensor noise_labels(const Interval& images, int64_t classes, uint64_t seed);

}  // namespace mpi4dl
