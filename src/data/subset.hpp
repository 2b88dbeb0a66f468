#pragma once

#include <span>

#include "data/dataset.hpp"

namespace mpi4dl {

/// Holds some images of another data set, in a given order.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> all, std::vector<int64_t> samples);
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  Extents extent(int64_t sample) const override { return all_->extent(samples_.at(sample)); }
  int64_t label(int64_t sample) const override { return all_->label(samples_.at(sample)); }
  std::string name(int64_t sample) const override { return all_->name(samples_.at(sample)); }
  Problem look_at(int64_t sample) const override { return all_->look_at(samples_.at(sample)); }
  at::Tensor read(int64_t sample, const Box& box) const override {
    return all_->read(samples_.at(sample), box);
  }

 private:
  std::shared_ptr<const Dataset> all_;
  std::vector<int64_t> samples_;
};

/// Returns which samples to hold out for validation: of each class this fraction, rounded, by the
/// smallest hashes of their keys. Samples with the same key stay together; they count for the class
/// that most of them have, and the share is as near to the fraction as they allow. A sample keeps
/// its part when others come and go, but for the few at the border.
std::vector<bool> hold_out(std::span<const int64_t> labels, std::span<const uint64_t> keys,
                           double fraction);

/// Makes the samples that are held out the validation part, which is null where there are none.
DataParts split(std::shared_ptr<const Dataset> all, const std::vector<bool>& held_out);

}  // namespace mpi4dl
