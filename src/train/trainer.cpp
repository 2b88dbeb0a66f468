#include "train/trainer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/idle_section.hpp"
#include "comm/memory_meter.hpp"
#include "train/loss.hpp"
#include "train/thread_share.hpp"

namespace mpi4dl {
namespace {

/// By arithmetic alone: backward is twice as much as forward.
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

int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels) {
  return logits.numel() == 0 ? 0 : logits.argmax(1).eq(labels).sum().item<int64_t>();
}

}  // namespace

Trainer::Trainer(const Graph& graph, const Layout& layout, Work work, const TrainerOptions& options,
                 const Communicator& world)
    : graph_(graph),
      world_(world),
      team_(layout, world),
      work_(std::move(work)),
      options_(options),
      parameters_(make_parameters(graph, options.cells, team_, options.type, options.seed)) {
  std::vector<PipelinePlan> plans =
      plan_sizes(graph, layout.stages(), options.cells, work_.batches, options.halo);
  for (const auto& [stage, parameters] : parameters_)
    optimizers_[stage] = std::make_unique<Optimizer>(*parameters, options.optimizer);
  at::set_num_threads(share_of_threads(layout, work_.schedule, stage_costs(plans[0]), world));
  pipeline_ = std::make_unique<Pipeline>(std::move(plans), team_, parameters_, options.stage);
}

StepReport Trainer::step(BatchSource& images) {
  StepReport report;
  report.images = work_.effective_batch;
  report.learning_rate = options_.learning_rate.at(steps_);
  report.logits =
      at::zeros({work_.effective_batch, graph_.node(graph_.output()).shape.channels}, at::kDouble);
  std::map<int, GradientReduction> reductions;
  for (auto& [stage, parameters] : parameters_) {
    parameters->clear();
    reductions.try_emplace(stage, *parameters, team_.holders().at(stage), options_.reduction);
  }
  const Feed feed = make_feed(images, report);
  const StepContext step{feed, combine_keys(options_.seed, static_cast<uint64_t>(steps_))};
  const Traffic before = world_.context().sent;
  {
    const MemoryMeter meter;
    pipeline_->run(work_.schedule, work_.batches, step,
                   [&](int stage, int cell) { reductions.at(stage).add(cell); });
    report.peak_bytes = meter.peak_bytes();
  }
  const Traffic after = world_.context().sent;
  report.sent = {after.messages - before.messages, after.bytes - before.bytes};
  for (auto& [stage, reduction] : reductions) reduction.finish();
  add_up(report);
  stop_if_not_finite(report, step);
  const double scale = clipping_scale(reductions);
  for (auto& [stage, parameters] : parameters_) {
    parameters->update_statistics();
    optimizers_.at(stage)->step(report.learning_rate, scale, reductions.at(stage).complete());
    if (sliced(stage)) team_.holders().at(stage).gather_slices(parameters->value_memory());
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

Feed Trainer::make_feed(BatchSource& images, StepReport& report) {
  return {
      .pixels = [&, this](const MicroBatch& batch,
                          const Box& box) { return read_box(images, batch, box, options_.type); },
      .loss_gradient =
          [&, this](const MicroBatch& batch, const Patch& logits) {
            const Interval& which = logits.box[0];
            const at::Tensor labels = read_labels(images, batch, which);
            const Loss loss = cross_entropy(logits.data, labels, work_.effective_batch);
            report.loss += loss.sum;
            report.correct += count_correct(logits.data, labels);
            for (int64_t i = 0; i < which.length(); ++i)
              report.logits[batch[which.begin + i]].copy_(logits.data[i]);
            return loss.gradient;
          }};
}

void Trainer::add_up(StepReport& report) const {
  const bool stop = options_.stop_requested && options_.stop_requested();
  at::Tensor sums =
      at::tensor({report.loss, static_cast<double>(report.correct), stop ? 1.0 : 0.0}, at::kDouble);
  const IdleSection section(world_.context(), &IdleTime::waiting);
  world_.all_reduce(sums);
  report.loss = sums[0].item<double>();
  report.correct = static_cast<int64_t>(sums[1].item<double>());
  report.stop = sums[2].item<double>() > 0;
}

/// The step is run again, forward only: parameters have not changed yet.
void Trainer::stop_if_not_finite(const StepReport& report, const StepContext& step) {
  if (std::isfinite(report.loss)) return;
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const auto bad = pipeline_->find_bad_cell(work_.schedule, work_.batches, step);
  at::Tensor first = at::full({1}, -(bad ? int64_t{*bad} : kNone), at::kLong);
  world_.all_reduce(first, Reduction::max);
  const int64_t cell = -first.item<int64_t>();
  throw Error(fmt::format(
      "the loss of step {} is {}; the first values that are not finite come from {}", steps_ + 1,
      report.loss, cell == kNone ? "the loss itself" : "cell " + graph_.cells()[cell]));
}

/// The whole gradient's norm: of each stage once, however many ranks hold it.
double Trainer::clipping_scale(const std::map<int, GradientReduction>& reductions) const {
  if (options_.clip_norm <= 0) return 1;
  double squares = 0;
  for (const auto& [stage, parameters] : parameters_) {
    const Interval part = reductions.at(stage).complete();
    const double norm = parameters->gradient_memory()
                            .narrow(0, part.begin, part.length())
                            .norm(2, at::kDouble)
                            .item<double>();
    squares += norm * norm / (sliced(stage) ? 1 : team_.holders().at(stage).size());
  }
  at::Tensor sum = at::full({1}, squares, at::kDouble);
  world_.all_reduce(sum);
  const double norm = std::sqrt(sum.item<double>());
  return norm > options_.clip_norm ? options_.clip_norm / norm : 1;
}

bool Trainer::sliced(int stage) const {
  return GradientReduction::slice(*parameters_.at(stage), team_.holders().at(stage)).has_value();
}

void Trainer::gather_gradients() const {
  for (const auto& [stage, parameters] : parameters_)
    if (sliced(stage)) team_.holders().at(stage).gather_slices(parameters->gradient_memory());
}

std::map<int, TensorMap> Trainer::state() const {
  std::map<int, TensorMap> found;
  for (const auto& [stage, parameters] : parameters_) {
    if (sliced(stage)) optimizers_.at(stage)->gather(team_.holders().at(stage));
    found[stage] = optimizers_.at(stage)->state();
    found[stage].merge(parameters->statistics());
  }
  return found;
}

void Trainer::go_on(int64_t steps) {
  steps_ = steps;
  for (const auto& [stage, optimizer] : optimizers_) optimizer->go_on(steps);
}

bool Trainer::holders_agree() const {
  at::Tensor apart = at::zeros({1}, at::kDouble);
  for (const auto& [stage, parameters] : parameters_)
    for (const auto& tensors : {parameters->trainable(), parameters->statistics()})
      for (const auto& [name, values] : tensors) {
        at::Tensor first = values.clone();
        team_.holders().at(stage).broadcast(first, 0);
        if (!at::equal(first, values)) apart.fill_(1);
      }
  world_.all_reduce(apart, Reduction::max);
  return apart.item<double>() == 0;
}

}  // namespace mpi4dl
