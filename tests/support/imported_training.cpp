#include "support/imported_training.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "data/dataset.hpp"
#include "plan/balance.hpp"
#include "support/imported_step.hpp"
#include "train/trainer.hpp"
#include "train/weights.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int kSteps = 3;

/// Holds the images of a file of expected values.
class ExpectedImages : public Dataset {
 public:
  explicit ExpectedImages(const SafetensorsFile& expected)
      : images_(expected.read("input").to(at::kDouble)), extent_(image_of(expected)) {
    if (expected.tensors().contains("labels")) labels_ = expected.read("labels");
  }
  int64_t size() const override { return images_.size(0); }
  Extents extent(int64_t /*sample*/) const override { return extent_; }
  int64_t label(int64_t sample) const override {
    return labels_.defined() ? labels_[sample].item<int64_t>() : -1;
  }
  std::string name(int64_t sample) const override { return "expected " + std::to_string(sample); }
  at::Tensor read(int64_t sample, const Box& box) const override {
    at::Tensor part = images_[sample];
    for (int axis = 2; axis < images_.dim(); ++axis)
      part = part.slice(axis - 1, box[axis].begin, box[axis].end);
    return part;
  }

 private:
  at::Tensor images_, labels_;
  Extents extent_;
};

/// Returns the settings of OPTIMIZERS in expected.py.
TrainerOptions options_of(const std::string& optimizer) {
  TrainerOptions options{.type = c10::ScalarType::Double};
  if (optimizer == "sgd") {
    options.optimizer = {.momentum = 0.9, .weight_decay = 1e-3};
    options.learning_rate.base = 0.01;
  } else {
    ensure(optimizer == "adamw", "PyTorch has not trained with '{}'", optimizer);
    options.optimizer = {.kind = OptimizerOptions::Kind::adamw, .weight_decay = 0.1};
    options.learning_rate.base = 0.001;
  }
  return options;
}

/// Compares the tensors of the stages that this rank has a part of.
Comparison compare_here(const Trainer& trainer, const ImportedModel& model,
                        const SafetensorsFile& expected, const std::string& prefix) {
  StepResult mine, theirs;
  mine.logits = theirs.logits = at::ones({1});
  const auto add = [&](const TensorMap& tensors, TensorMap& found, TensorMap& wanted) {
    for (const auto& [name, values] : tensors) {
      const std::string* known = find_expected(model, expected, prefix, name);
      ensure(known != nullptr, "PyTorch has trained no {}", name);
      found[name] = values.to(at::kCPU);
      wanted[name] = expected.read(*known).reshape(values.sizes());
    }
  };
  for (const auto& [stage, parameters] : trainer.parameters()) {
    add(parameters->trained(), mine.parameters, theirs.parameters);
    add(parameters->statistics(), mine.statistics, theirs.statistics);
  }
  return compare(mine, theirs);
}

/// Returns the worst comparison of all ranks.
Comparison worst_of_all(Comparison mine, const Communicator& world) {
  if (std::isnan(mine.max_relative_error))
    mine.max_relative_error = std::numeric_limits<double>::infinity();
  at::Tensor worst = at::full({1}, mine.max_relative_error, at::kDouble);
  all_reduce(worst, world, {.reduction = Reduction::max});
  if (mine.max_relative_error < worst.item<double>())
    mine = {worst.item<double>(), "what another rank has"};
  return mine;
}

}  // namespace

Comparison compare_training(const ImportedModel& model, const std::vector<Grid>& stages,
                            const std::string& optimizer, const SafetensorsFile& expected,
                            const Communicator& world) {
  const Layout layout(world.size(), stages);
  const ExpectedImages images(expected);
  TrainerOptions options = options_of(optimizer);
  options.cells = balance_cells(model.graph, layout.stages());
  const BatchShape shape{.batch = images.size(), .replicas = layout.replicas()};
  Trainer trainer(model.graph, layout, share_work(layout, shape, ScheduleKind::gpipe, world.rank()),
                  options, world);
  load_weights("",
               {.name = "imported", .graph = model.graph, .own = true, .weights = model.weights},
               trainer, world);
  for (int step = 0; step < kSteps; ++step) {
    SampleBatch batch = all_samples(images);
    trainer.step(batch);
  }
  return worst_of_all(compare_here(trainer, model, expected, optimizer + '/'), world);
}

}  // namespace mpi4dl::testing
