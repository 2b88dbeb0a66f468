#include "train/examination.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "comm/agreement.hpp"

namespace mpi4dl {

Examination::Examination(std::shared_ptr<const Dataset> data, const Graph& graph,
                         const Layout& layout, const ProcessGroups& groups,
                         const StageParameters& parameters, ExaminationOptions options,
                         const Communicator& world)
    : data_(std::move(data)), options_(std::move(options)), world_(world) {
  check_some_left();
  for (int64_t sample = 0; sample < data_->size(); ++sample)
    if (!options_.bad.contains(sample)) samples_.push_back(sample);
  images_ = std::make_unique<Subset>(data_, samples_);
  readable_ = std::make_unique<ReadableBatch>(*images_);
  evaluator_ = std::make_unique<Evaluator>(graph, layout, groups, parameters, options_.evaluator,
                                           images_->size(), world);
}

Predictions Examination::run() {
  if (!options_.skip_bad_images) {
    SampleBatch all = all_samples(*images_);
    return evaluator_->run(all);
  }
  Predictions found = evaluator_->run(*readable_);
  for (const auto& [place, reason] : readable_->agree(world_)) {
    options_.bad.emplace(samples_[place], reason);
    if (world_.rank() == 0) options_.warn("left out: " + reason);
  }
  check_some_left();
  at::Tensor rows = at::zeros({data_->size(), found.logits.size(1)}, at::kDouble);
  rows.index_copy_(0, at::tensor(samples_, at::kLong), found.logits);
  found.logits = rows;
  return found;
}

void Examination::check_some_left() const {
  if (std::ssize(options_.bad) < data_->size()) return;
  throw CommonError(
      fmt::format("none of {} image{} can be read", data_->size(), data_->size() == 1 ? "" : "s"));
}

}  // namespace mpi4dl
