#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "geometry/box.hpp"
#include "layout/micro_batches.hpp"

namespace mpi4dl {

/// Labelled images of one shape, of which every rank reads only its own boxes.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t sample) const = 0;
  /// The pixels of a box of one image, channels first: its batch axis is ignored.
  virtual at::Tensor read(int64_t sample, const Box& box) const = 0;
};

/// A box of several images as a tensor, channels last: image i of the box is samples[i].
at::Tensor read_box(const Dataset& data, const std::vector<int64_t>& samples, const Box& box,
                    c10::ScalarType type);

/// Labels of the images that the box's batch axis names.
at::Tensor read_labels(const Dataset& data, const std::vector<int64_t>& samples,
                       const Interval& images);

}  // namespace mpi4dl
