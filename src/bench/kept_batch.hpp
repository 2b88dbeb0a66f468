#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "data/batch_source.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {

/// Gives every step the same random images, kept from the first one on: reading takes no time.
class KeptBatch : public BatchSource {
 public:
  explicit KeptBatch(const SyntheticOptions& options) : origin_(options) {}

  int64_t label(int64_t place) const override { return origin_.label(place); }
  at::Tensor read(const Reading& reading) override;

 private:
  RandomImages origin_;
  std::vector<std::pair<Reading, at::Tensor>> kept_;
};

}  // namespace mpi4dl
