#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "data/dataset.hpp"
#include "geometry/box.hpp"
#include "layout/micro_batches.hpp"

namespace mpi4dl {

/// Reading is a box of the image at one place of the effective batch, as one rank reads it in a
/// step.
struct Reading {
  int64_t place = 0;
  Box box;  ///< its batch axis has one image

  bool operator==(const Reading&) const = default;
};

/// Gives the images of one optimizer step, by their place in the effective batch.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t label(int64_t place) const = 0;
  /// Returns the pixels of a box of one image, channels first.
  virtual at::Tensor read(const Reading& reading) = 0;
};

/// Gives samples of a data set as they are: samples[i] stands at place i.
class SampleBatch : public BatchSource {
 public:
  SampleBatch(const Dataset& data, std::vector<int64_t> samples)
      : data_(data), samples_(std::move(samples)) {}
  int64_t label(int64_t place) const override { return data_.label(samples_.at(place)); }
  at::Tensor read(const Reading& reading) override {
    return data_.read(samples_.at(reading.place), reading.box);
  }

 private:
  const Dataset& data_;
  std::vector<int64_t> samples_;
};

/// Returns all samples of a data set, each at the place of its number.
SampleBatch all_samples(const Dataset& data);

/// Returns what has to be read for a box of a micro-batch, whose batch axis counts its images.
std::vector<Reading> readings(const MicroBatch& images, const Box& box);

/// Returns a box of a micro-batch as a channels-last tensor.
at::Tensor read_box(BatchSource& source, const MicroBatch& images, const Box& box,
                    c10::ScalarType type);

/// Returns the labels of the part `which` of a micro-batch.
at::Tensor read_labels(const BatchSource& source, const MicroBatch& images, const Interval& which);

}  // namespace mpi4dl
