#include "data/batch_source.hpp"

#include <ATen/ATen.h>

#include <numeric>

#include "exchange/patch.hpp"
#include "memory/memory_meter.hpp"

namespace mpi4dl {

SampleBatch all_samples(const Dataset& data) {
  std::vector<int64_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0);
  return {data, std::move(samples)};
}

std::vector<Reading> readings(const MicroBatch& images, const Box& box) {
  std::vector<Reading> all;
  if (box.empty()) return all;
  for (int64_t i = box[0].begin; i < box[0].end; ++i) {
    Reading& reading = all.emplace_back(Reading{images.at(i), box});
    reading.box[0] = {0, 1};
  }
  return all;
}

at::Tensor read_box(BatchSource& source, const MicroBatch& images, const Box& box,
                    c10::ScalarType type) {
  at::Tensor pixels =
      at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)));
  // Threads that read ahead have allocated some of what is freed here.
  const UnmeteredSection section;
  int64_t next = 0;
  for (const Reading& reading : readings(images, box)) pixels[next++].copy_(source.read(reading));
  return pixels;
}

at::Tensor read_labels(const BatchSource& source, const MicroBatch& images, const Interval& which) {
  at::Tensor labels = at::empty({which.length()}, at::kLong);
  for (int64_t i = 0; i < which.length(); ++i)
    labels.data_ptr<int64_t>()[i] = source.label(images.at(which.begin + i));
  return labels;
}

}  // namespace mpi4dl
