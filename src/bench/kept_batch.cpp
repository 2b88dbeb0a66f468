#include "bench/kept_batch.hpp"

namespace mpi4dl {

at::Tensor KeptBatch::read(const Reading& reading) {
  for (const auto& [known, pixels] : kept_)
    if (known == reading) return pixels;
  return kept_.emplace_back(reading, origin_.read(reading.place, reading.box)).second;
}

}  // namespace mpi4dl
