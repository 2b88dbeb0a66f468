#pragma once

#include "data/bad_samples.hpp"
#include "data/batch_source.hpp"

namespace mpi4dl {

/// Gives all samples of a data set, each at the place of its number, for a model that looks at each
/// image alone: one that cannot be read is shown as zeros, and remembered as bad.
class ReadableBatch : public BatchSource {
 public:
  explicit ReadableBatch(const Dataset& data) : data_(data) {}

  int64_t label(int64_t place) const override { return data_.label(place); }
  at::Tensor read(const Reading& reading) override;

  /// Tells all ranks what each has found, and returns what is new. Collective.
  BadSamples agree(const Communicator& world);
  /// Returns the bad samples that ranks have agreed on.
  const BadSamples& bad() const { return bad_; }

 private:
  const Dataset& data_;
  BadSamples bad_;
  BadSamples found_;  // by this rank, since the last agreement
};

}  // namespace mpi4dl
