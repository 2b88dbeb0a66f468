#include "cli/training_flags.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/number_type.hpp"
#include "pipeline/fastest_balance.hpp"

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
  command.add_option("--batch-size", batch, "Images of one replica and direction")
      ->check(at_least(1));
  command.add_option("--parts", parts, "Micro-batches of a batch")->check(at_least(1));
  default_in_words(
      command.add_option("--times", times, "GEMS: batches per optimizer step")->check(at_least(1)),
      "2 with --gems");
  default_in_words(command.add_option("--schedule", schedule, "gpipe or 1f1b")
                       ->check(CLI::IsMember({"gpipe", "1f1b"})),
                   "1f1b where --parts is above 1");
  command.add_flag("--recompute", trainer.stage.recompute,
                   "Keep only what passes between runs of cells, and run them again for backward");
}

void TrainingFlags::add_state_flags(CLI::App& command) {
  command.option_defaults()->group("Learning");
  add_dtype_flag(command, dtype);
  command.add_option("--optimizer", optimizer, "sgd, adam or adamw")->check(one_of(kOptimizers));
  command.add_option("--momentum", trainer.optimizer.momentum, "Of SGD")->check(at_least(0));
}

void TrainingFlags::add_learning_flags(CLI::App& command) {
  add_state_flags(command);
  command
      .add_option("--batch-norm", batch_norm,
                  "Statistics over the whole image (global), each tile (local) or all replicas")
      ->check(one_of(kScopes));
  command.add_option("--seed", trainer.seed, "Of weights, images and dropout");
  command.add_flag("--fp16-allreduce", trainer.reduction.half,
                   "Gradients travel between nodes as float16, and are summed in float32");
  command.add_option("--weight-decay", trainer.optimizer.weight_decay, "Pull of weights to zero")
      ->check(at_least(0));
  default_in_words(command
                       .add_option("--clip-norm", trainer.clip_norm,
                                   "Shorten gradients that are longer than this")
                       ->check(more_than(0)),
                   "never");
  command.add_option("--lr", trainer.learning_rate.base, "Learning rate")->check(more_than(0));
  command.add_option("--lr-schedule", rate_kind, "constant, step or cosine")->check(one_of(kRates));
  command.add_option("--lr-warmup", trainer.learning_rate.warmup, "Steps of linear rise")
      ->check(at_least(0));
  command
      .add_option("--lr-step", trainer.learning_rate.every, "step: lower the rate every so many")
      ->check(at_least(1));
  command.add_option("--lr-factor", trainer.learning_rate.factor, "step: and by this factor")
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
  if (!schedule.empty())
    return schedule == "gpipe" ? ScheduleKind::gpipe : ScheduleKind::one_f_one_b;
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
  options.type = number_type(dtype);
  options.optimizer.kind = kOptimizers.at(optimizer);
  options.learning_rate.kind = kRates.at(rate_kind);
  return options;
}

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::gems:
      return "gems";
  }
  return "";
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
