#pragma once

#include "data/dataset.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

struct SyntheticOptions {
  int64_t size = 1;  ///< images
  int64_t classes = 10;
  Shape image;
  uint64_t seed = 1;
};

/// Makes pixels and labels without any meaning: for verification and for speed.
class RandomImages : public Dataset {
 public:
  explicit RandomImages(const SyntheticOptions& options);
  int64_t size() const override { return options_.size; }
  Extents extent(int64_t /*sample*/) const override { return options_.image.space; }
  int64_t label(int64_t sample) const override;
  std::string name(int64_t sample) const override { return "random " + std::to_string(sample); }
  at::Tensor read(int64_t sample, const Box& box) const override;

 private:
  SyntheticOptions options_;
  std::vector<int64_t> whole_;  // all images as one tensor
};

/// Makes something to learn: noise over waves whose length, angle and colour belong to the class;
/// from global positions, so no rank ever builds a whole image.
class SyntheticImages : public Dataset {
 public:
  explicit SyntheticImages(const SyntheticOptions& options);
  int64_t size() const override { return noise_.size(); }
  Extents extent(int64_t sample) const override { return noise_.extent(sample); }
  int64_t label(int64_t sample) const override { return noise_.label(sample); }
  std::string name(int64_t sample) const override { return "synthetic " + std::to_string(sample); }
  at::Tensor read(int64_t sample, const Box& box) const override;

 private:
  SyntheticOptions options_;
  RandomImages noise_;
};

}  // namespace mpi4dl
