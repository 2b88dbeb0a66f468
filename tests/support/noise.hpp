#pragma once

#include <ATen/ATen.h>

#include <span>

#include "backend/random_field.hpp"
#include "base/random.hpp"
#include "exchange/patch.hpp"

namespace mpi4dl::testing {

/// Returns random pixels in [-1, 1) of a box of a batch of images. They depend on seed and global
/// position alone, so every layout sees the same images.
inline at::Tensor noise_pixels(const Box& box, std::span<const int64_t> whole, uint64_t seed,
                               c10::ScalarType type) {
  return random_field(box, whole, seed, [](double u) { return 2 * u - 1; })
      .to(type)
      .contiguous(memory_format(box));
}

/// Returns a random class for each image of a batch.
inline at::Tensor noise_labels(int64_t images, int64_t classes, uint64_t seed) {
  at::Tensor labels = at::empty({images}, at::kLong);
  for (int64_t i = 0; i < images; ++i)
    labels[i] = static_cast<int64_t>(uniform(combine_keys(seed, 1), static_cast<uint64_t>(i)) *
                                     static_cast<double>(classes));
  return labels;
}

}  // namespace mpi4dl::testing
