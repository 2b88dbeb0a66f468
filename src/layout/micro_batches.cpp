#include "layout/micro_batches.hpp"

#include <numeric>

#include "base/error.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {

std::vector<MicroBatch> micro_batches(const BatchShape& shape, int replica) {
  validate(shape.parts <= shape.batch,
           "a batch of {} images has no {} micro-batches; use at most {}", shape.batch, shape.parts,
           shape.batch);
  std::vector<MicroBatch> batches;
  for (int round = 0; round < shape.times; ++round) {
    const int64_t first = (int64_t{replica} * shape.times + round) * shape.batch;
    for (int index = 0; index < shape.parts; ++index) {
      const Interval images = part(shape.batch, index, shape.parts);
      MicroBatch& batch = batches.emplace_back(images.length());
      std::iota(batch.begin(), batch.end(), first + images.begin);
    }
  }
  return batches;
}

std::vector<MicroBatch> all_micro_batches(const BatchShape& shape) {
  std::vector<MicroBatch> all;
  for (int replica = 0; replica < shape.replicas; ++replica)
    for (MicroBatch& batch : micro_batches(shape, replica)) all.push_back(std::move(batch));
  return all;
}

std::vector<MicroBatch> joined_micro_batches(const BatchShape& shape) {
  std::vector<MicroBatch> joined = micro_batches(shape, 0);
  for (int replica = 1; replica < shape.replicas; ++replica) {
    const std::vector<MicroBatch> others = micro_batches(shape, replica);
    for (size_t i = 0; i < joined.size(); ++i)
      joined[i].insert(joined[i].end(), others[i].begin(), others[i].end());
  }
  return joined;
}

}  // namespace mpi4dl
