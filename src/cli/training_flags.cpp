#include "cli/training_flags.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/dtype_flag.hpp"
#include "simulate/fastest_balance.hpp"

namespace mpi4dl {
namespace {

template <typename T>
using Choices = std::map<std::string, T>;

const Choices<BatchNormScope> kScopes{{"global", BatchNormScope::global},
                                      {"local", BatchNormScope::local},
                                      {"replicas", BatchNormScope::replicas}};
const Choices<OptimizerOptions::Kind> kOptimizers{{"sgd", OptimizerOptions::Kind::sgd},
                                                  {"adam", OptimizerOptions::Kind::adam},
                                                  {"adamw", OptimizerOptions::Kind::adamw}};
const Choices<LearningRate::Kind> kRates{{"constant", LearningRate::Kind::constant},
                                         {"step", LearningRate::Kind::step},
                                         {"cosine", LearningRate::Kind::cosine}};
// Without that of --gems.
const Choices<ScheduleKind> kSchedules{{"gpipe", ScheduleKind::gpipe},
                                       {"1f1b", ScheduleKind::one_f_one_b}};

template <typename T>
CLI::Validator one_of(const Choices<T>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return CLI::IsMember(names);
}

}  // namespace

void TrainingFlags::add_layout_flags(CLI::App& command) {
  parallel.add_to(command);
  parallel.add_gems_to(command);
  command.add_option("--batch-size", batch, "Batch size of one replica and direction")
      ->check(at_least(1));
  command.add_option("--parts", parts, "Micro-batches to cut a batch into")->check(at_least(1));
  default_in_words(
      command.add_option("--times", times, "GEMS: batches per optimizer step")->check(at_least(1)),
      "2 with --gems");
  default_in_words(command.add_option("--schedule", schedule, "Pipeline schedule: gpipe or 1f1b")
                       ->check(one_of(kSchedules)),
                   "1f1b where --parts is above 1");
  command.add_flag(
      "--recompute", trainer.stage.recompute,
      "Activation checkpointing: keep only what passes between groups of cells, and recompute "
      "the rest for backward");
}

void TrainingFlags::add_state_flags(CLI::App& command) {
  command.option_defaults()->group("Learning");
  add_dtype_flag(command, dtype);
  command.add_option("--optimizer", optimizer, "Optimizer: sgd, adam or adamw")
      ->check(one_of(kOptimizers));
  command.add_option("--momentum", trainer.optimizer.momentum, "SGD: momentum")->check(at_least(0));
  tuning.add_freezing_to(command);
}

void TrainingFlags::add_learning_flags(CLI::App& command) {
  add_state_flags(command);
  command
      .add_option(
          "--batch-norm", batch_norm,
          "Batch norm statistics over the whole image (global), each tile (local) or all replicas")
      ->check(one_of(kScopes));
  command
      .add_option("--seed", trainer.seed,
                  "Random seed of weights, synthetic images, shuffling and dropout")
      ->check(at_least(0));
  command.add_flag("--fp16-allreduce", trainer.reduction.half,
                   "All-reduce gradients between nodes in float16, accumulated in float32");
  command
      .add_option("--weight-decay", trainer.optimizer.weight_decay,
                  "L2 weight decay; decoupled with adamw")
      ->check(at_least(0));
  tuning.add_factors_to(command);
  default_in_words(
      command.add_option("--clip-norm", trainer.clip_norm, "Clip the gradient norm to this")
          ->check(more_than(0)),
      "never");
  command.add_option("--lr", trainer.learning_rate.base, "Learning rate")->check(more_than(0));
  command
      .add_option("--lr-schedule", rate_kind, "Learning rate schedule: constant, step or cosine")
      ->check(one_of(kRates));
  command.add_option("--lr-warmup", trainer.learning_rate.warmup, "Steps of linear warm-up")
      ->check(at_least(0));
  command
      .add_option("--lr-step", trainer.learning_rate.every,
                  "step: multiply the rate by --lr-factor every so many steps")
      ->check(at_least(1));
  command
      .add_option("--lr-factor", trainer.learning_rate.factor,
                  "step: factor of each multiplication")
      ->check(more_than(0));
}

void TrainingFlags::check() const {
  parallel.check();
  validate(times <= 1 || both_ways(),
           "--times {} is about two directions, but this run has one; runs with --gems have two, "
           "such as those in benchmarks/gems_master_model",
           times);
  validate(schedule.empty() || !both_ways(), "--schedule {} and --gems exclude each other",
           schedule);
  const LearningRate& rate = trainer.learning_rate;
  const LearningRate constant;
  const double momentum = trainer.optimizer.momentum;
  validate(rate_kind == "step" || rate.every == constant.every,
           "--lr-step {} requires --lr-schedule step", rate.every);
  validate(rate_kind == "step" || rate.factor == constant.factor,
           "--lr-factor {} requires --lr-schedule step", rate.factor);
  validate(optimizer == "sgd" || momentum == OptimizerOptions{}.momentum,
           "--momentum {} requires --optimizer sgd", momentum);
}

bool TrainingFlags::both_ways() const {
  return with_defaults(parallel.options).gems;
}

BatchShape TrainingFlags::batch_shape(const Layout& layout) const {
  const int default_times = both_ways() ? 2 : 1;
  return {batch, parts, times == 0 ? default_times : times, layout.replicas()};
}

ScheduleKind TrainingFlags::schedule_kind() const {
  if (both_ways()) return ScheduleKind::gems;
  if (!schedule.empty()) return kSchedules.at(schedule);
  return parts > 1 ? ScheduleKind::one_f_one_b : ScheduleKind::gpipe;
}

TrainerOptions TrainingFlags::trainer_options(const Graph& graph, const Layout& layout) const {
  TrainerOptions options = trainer;
  options.halo = parallel.halo;
  const BatchShape shape = batch_shape(layout);
  options.cells =
      parallel.balance.empty()
          ? fastest_balance(graph, layout, schedule_kind(),
                            {static_cast<int>(layout.stages().size()), shape.parts, shape.times})
          : given_balance(graph, layout.stages(), parallel.balance);
  options.stage.batch_norm = kScopes.at(batch_norm);
  options.type = scalar_type(dtype);
  options.optimizer.kind = kOptimizers.at(optimizer);
  tuning.set(options.optimizer, graph);
  options.learning_rate.kind = kRates.at(rate_kind);
  return options;
}

std::string describe_layout(const Graph& graph, const Layout& layout,
                            const std::vector<CellRange>& cells, const TrainingFlags& flags) {
  const BatchShape batch = flags.batch_shape(layout);
  std::vector<std::string> stages;
  for (size_t i = 0; i < cells.size(); ++i)
    stages.push_back(fmt::format("{} ({} of {} cells)", to_string(layout.stages()[i]),
                                 cells[i].last - cells[i].first, graph.cells().size()));
  std::string text = fmt::format("stages {}", fmt::join(stages, " | "));
  if (layout.replicas() > 1) text += fmt::format(", {} replicas", layout.replicas());
  if (batch.parts * batch.times > 1)
    text += fmt::format(", {} with {} micro-batches", to_string(flags.schedule_kind()),
                        batch.parts * batch.times);
  const HaloDesign& halo = flags.parallel.halo;
  if (halo.fused) text += fmt::format(", D2 with {} fused", halo.fused_layers);
  if (flags.trainer.stage.recompute) text += ", recompute";
  if (flags.trainer.reduction.half) text += ", gradients in float16 between nodes";
  return text + fmt::format(", batch norm {}", flags.batch_norm);
}

}  // namespace mpi4dl
