#include "data/dataset.hpp"

#include <ATen/ATen.h>

#include "exchange/patch.hpp"

namespace mpi4dl {

at::Tensor read_box(const Dataset& data, const std::vector<int64_t>& samples, const Box& box,
                    c10::ScalarType type) {
  at::Tensor pixels =
      at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)));
  if (box.empty()) return pixels;
  for (int64_t i = 0; i < box[0].length(); ++i)
    pixels[i].copy_(data.read(samples.at(box[0].begin + i), box));
  return pixels;
}

at::Tensor read_labels(const Dataset& data, const std::vector<int64_t>& samples,
                       const Interval& images) {
  at::Tensor labels = at::empty({images.length()}, at::kLong);
  for (int64_t i = 0; i < images.length(); ++i)
    labels.data_ptr<int64_t>()[i] = data.label(samples.at(images.begin + i));
  return labels;
}

}  // namespace mpi4dl
