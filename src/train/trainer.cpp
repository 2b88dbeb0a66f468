#include "train/trainer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/collectives.hpp"
#include "comm/idle_section.hpp"
#include "comm/staging.hpp"
#include "memory/memory_meter.hpp"
#include "task/loss.hpp"
#include "train/batch_norm_check.hpp"
#include "train/gradient_clipping.hpp"
#include "train/thread_share.hpp"

namespace mpi4dl {
namespace {

/// Costs are arithmetic alone: backward is twice as much as forward.
std::vector<StageCost> stage_costs(const PipelinePlan& plan) {
  std::vector<StageCost> costs;
  for (const StagePlan& stage : plan.stages()) {
    double slowest = 1;
    for (int rank = 0; rank < stage.grid().size(); ++rank)
      slowest = std::max(slowest, static_cast<double>(stage.cost(rank).flops));
    costs.push_back({slowest, 2 * slowest});
  }
  return costs;
}

/// Returns how many images have their class as the largest logit.
at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& labels) {
  if (logits.numel() == 0) return at::zeros({}, logits.options().dtype(at::kDouble));
  return logits.argmax(1).eq(labels).sum().to(at::kDouble);
}

}  // namespace

void Trainer::LastStage::add(const at::Tensor& loss, const at::Tensor& correct) {
  const at::Tensor both = at::stack({loss, correct});
  sums = sums.defined() ? sums + both : both;
}

Trainer::Trainer(const Graph& graph, const Layout& layout, Work work, const TrainerOptions& options,
                 const Communicator& world)
    : graph_(graph),
      world_(world),
      groups_(layout, world),
      work_(std::move(work)),
      options_(options),
      parameters_(make_parameters(graph, options.cells, groups_, options.type, options.seed)) {
  std::vector<PipelinePlan> plans =
      plan_sizes(graph, layout.stages(), options.cells, work_.batches, options.halo);
  for (const auto& [stage, parameters] : parameters_) {
    updates_.try_emplace(stage, *parameters, groups_.data_parallel().at(stage));
    optimizers_[stage] = std::make_unique<Optimizer>(*parameters, options.optimizer);
  }
  for (const PipelinePlan& plan : plans)
    check_batch_norms(plan, options.stage.batch_norm, layout.replicas());
  at::set_num_threads(share_of_threads(layout, work_.schedule, stage_costs(plans[0]), world));
  pipeline_ = std::make_unique<Pipeline>(std::move(plans), groups_, parameters_, options.stage);
}

StepReport Trainer::step(BatchSource& images) {
  StepReport report;
  report.images = work_.effective_batch;
  report.learning_rate = options_.learning_rate.at(steps_);
  const int64_t classes = classifies() ? graph_.node(graph_.output()).shape.channels : 0;
  report.logits = at::zeros({work_.effective_batch, classes}, at::kDouble);
  std::map<int, GradientReduction> reductions;
  for (auto& [stage, parameters] : parameters_) {
    parameters->clear();
    reductions.try_emplace(stage, *parameters, updates_.at(stage), options_.reduction);
  }
  LastStage last;
  const Feed feed = make_feed(images, last);
  const StepContext step{feed, combine_keys(options_.seed, static_cast<uint64_t>(steps_))};
  const Traffic before = world_.context().sent;
  {
    const MemoryMeter meter(world_.context().backend->device().type());
    pipeline_->run(work_.schedule, work_.batches, step,
                   [&](int stage, int cell) { reductions.at(stage).add(cell); });
    report.peak_bytes = meter.peak_bytes();
  }
  const Traffic after = world_.context().sent;
  report.sent = {after.messages - before.messages, after.bytes - before.bytes};
  for (auto& [stage, reduction] : reductions) reduction.finish();
  add_up(report, last);
  stop_if_not_finite(report, step);
  const double scale = clipping_scale(options_.clip_norm, parameters_, updates_, world_);
  for (auto& [stage, parameters] : parameters_) {
    parameters->update_statistics();
    optimizers_.at(stage)->step(report.learning_rate, scale, updates_.at(stage));
  }
  ++steps_;
  return report;
}

std::vector<Reading> Trainer::readings() const {
  std::vector<Reading> all;
  for (const Action& action : work_.schedule) {
    if (action.kind != Action::Kind::forward) continue;
    const MicroBatch& batch = work_.batches[action.batch];
    const Box box = pipeline_->image_box(action.direction, static_cast<int64_t>(batch.size()));
    for (const Reading& reading : mpi4dl::readings(batch, box)) all.push_back(reading);
  }
  return all;
}

bool Trainer::classifies() const {
  return !graph_.node(graph_.output()).shape.spatial();
}

at::Tensor Trainer::classification_gradient(const BatchSource& images, const MicroBatch& batch,
                                            const Patch& logits, LastStage& last) const {
  const Backend& backend = *world_.context().backend;
  const at::Tensor labels = backend.from_host(read_labels(images, batch, logits.box[0]));
  const Loss loss = cross_entropy(logits.data, labels, work_.effective_batch);
  last.add(loss.sum, count_correct(logits.data, labels));
  last.logits.add(batch, logits);
  return loss.gradient;
}

at::Tensor Trainer::pixelwise_gradient(const Patch& output, LastStage& last) const {
  const Loss loss = half_mean_square(output.data, work_.effective_batch,
                                     graph_.node(graph_.output()).shape.elements());
  last.add(loss.sum, at::zeros_like(loss.sum));
  return loss.gradient;
}

Feed Trainer::make_feed(BatchSource& images, LastStage& last) {
  const Backend& backend = *world_.context().backend;
  return {.pixels =
              [&, this](const MicroBatch& batch, const Box& box) {
                return backend.from_host(read_box(images, batch, box, options_.type));
              },
          .loss_gradient =
              [&, this](const MicroBatch& batch, const Patch& logits) {
                return classifies() ? classification_gradient(images, batch, logits, last)
                                    : pixelwise_gradient(logits, last);
              }};
}

/// Here a device is waited for: once a step.
void Trainer::add_up(StepReport& report, const LastStage& last) const {
  const CommContext& context = world_.context();
  last.logits.write(report.logits, context);
  at::Tensor sums = at::zeros({3}, at::kDouble);
  if (last.sums.defined()) sums.narrow(0, 0, 2).copy_(in_host_memory(last.sums, context));
  if (options_.stop_requested && options_.stop_requested()) sums[2] = 1;
  const IdleSection section(context, &IdleTime::waiting);
  all_reduce(sums, world_);
  report.loss = sums[0].item<double>();
  report.correct = static_cast<int64_t>(sums[1].item<double>());
  report.stop = sums[2].item<double>() > 0;
}

/// Finds the cell by another run of the step, forward only: parameters have not changed yet.
void Trainer::stop_if_not_finite(const StepReport& report, const StepContext& step) {
  if (std::isfinite(report.loss)) return;
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const auto bad = pipeline_->find_bad_cell(work_.schedule, work_.batches, step);
  at::Tensor first = at::full({1}, -(bad ? int64_t{*bad} : kNone), at::kLong);
  all_reduce(first, world_, {.reduction = Reduction::max});
  const int64_t cell = -first.item<int64_t>();
  throw Error(fmt::format(
      "the loss of step {} is {}; the first values that are not finite come from {}", steps_ + 1,
      report.loss, cell == kNone ? "the loss itself" : "cell " + graph_.cells()[cell]));
}

void Trainer::gather_gradients() const {
  for (const auto& [stage, parameters] : parameters_)
    updates_.at(stage).gather(parameters->gradient_memory());
}

std::map<int, TensorMap> Trainer::state() const {
  std::map<int, TensorMap> found;
  for (const auto& [stage, parameters] : parameters_) {
    optimizers_.at(stage)->gather(updates_.at(stage));
    found[stage] = optimizers_.at(stage)->state();
    found[stage].merge(parameters->statistics());
    found[stage].merge(parameters->frozen());
  }
  return found;
}

void Trainer::restore(int64_t step) {
  steps_ = step;
  for (const auto& [stage, optimizer] : optimizers_) optimizer->restore(step);
}

bool Trainer::replicas_agree() const {
  at::Tensor apart = at::zeros({1}, at::kDouble);
  for (const auto& [stage, parameters] : parameters_)
    for (const auto& tensors :
         {parameters->trained(), parameters->statistics(), parameters->frozen()})
      for (const auto& [name, values] : tensors) {
        at::Tensor first = values.clone();
        broadcast(first, updates_.at(stage).group(), 0);
        if (!at::equal(first, values)) apart.fill_(1);
      }
  all_reduce(apart, world_, {.reduction = Reduction::max});
  return apart.item<double>() == 0;
}

}  // namespace mpi4dl
