#include "data/readable_batch.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace mpi4dl {

at::Tensor ReadableBatch::read(const Reading& reading) {
  const auto zeros = [&] {
    return at::zeros({reading.box[1].length(), reading.box[2].length(), reading.box[3].length()});
  };
  if (bad_.contains(reading.place) || found_.contains(reading.place)) return zeros();
  try {
    return data_.read(reading.place, reading.box);
  } catch (const Error& error) {
    found_.emplace(reading.place, error.what());
    return zeros();
  }
}

BadSamples ReadableBatch::agree(const Communicator& world) {
  const BadSamples found = gather_bad_samples(found_, world);
  found_.clear();
  bad_.insert(found.begin(), found.end());
  return found;
}

}  // namespace mpi4dl
