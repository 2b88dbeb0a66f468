#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/units.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"
#include "pipeline/simulator.hpp"
#include "plan/memory.hpp"
#include "plan/recompute.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kFloat32 = 4;

struct PlanFlags {
  ModelFlags model;
  TrainingFlags training;
  int ranks = 0;  // 0: one replica
};

std::vector<Schedule> schedules(const PlanFlags& flags, const Layout& layout) {
  const BatchShape batch = flags.training.batch_shape(layout);
  const PipelineShape shape{static_cast<int>(layout.stages().size()), batch.parts, batch.times};
  std::vector<Schedule> by_rank;
  for (int rank = 0; rank < layout.group_size(); ++rank)
    by_rank.push_back(
        make_schedule(flags.training.schedule_kind(), shape, layout.roles(rank)[0].stage));
  return by_rank;
}

void print_stage(const Graph& graph, const Layout& layout, int stage, const CellRange& cells,
                 const StagePlan& plan, bool recompute, const Simulation& played) {
  const std::vector<int> ranks = layout.stage_ranks(0, 0, stage);
  std::printf("%5d  %-7s %-9s %-34s", stage,
              fmt::format("{}-{}", ranks.front(), ranks.back()).c_str(),
              to_string(plan.grid()).c_str(),
              fmt::format("{} ({} .. {})", cells.last - cells.first, graph.cells()[cells.first],
                          graph.cells()[cells.last - 1])
                  .c_str());
  const std::vector<CellRange> recomputed =
      recompute ? recomputed_cells(plan) : std::vector<CellRange>();
  RankCost worst;
  int64_t memory = 0;
  for (int rank = 0; rank < plan.grid().size(); ++rank) {
    const RankCost cost = plan.cost(rank);
    worst.flops = std::max(worst.flops, cost.flops);
    worst.redundant_flops = std::max(worst.redundant_flops, cost.redundant_flops);
    worst.messages = std::max(worst.messages, cost.messages);
    worst.elements_sent = std::max(worst.elements_sent, cost.elements_sent);
    const ActivationBytes bytes = activation_bytes(plan, rank, kFloat32, recomputed);
    memory = std::max(memory, bytes.with_live(played.peak_live[ranks[rank]]));
  }
  std::printf(" %10.3f %9.1f%% %10.1f %9lld %10.2f\n", static_cast<double>(worst.flops) * 1e-9,
              100.0 * static_cast<double>(worst.redundant_flops) /
                  static_cast<double>(std::max<int64_t>(worst.flops, 1)),
              mebibytes(memory), static_cast<long long>(worst.messages),
              mebibytes(worst.elements_sent * kFloat32));
}

int run_plan(Session& session, const PlanFlags& flags) {
  session.doing("planning");
  flags.training.check();
  const Graph graph = build_model(flags.model.model());
  const int one_replica = Layout(flags.training.parallel.options, 0).group_size();
  const Layout layout(flags.training.parallel.options,
                      flags.ranks == 0 ? one_replica : flags.ranks);
  const TrainerOptions trainer = flags.training.trainer_options(graph, layout);
  const auto largest = [](const MicroBatch& a, const MicroBatch& b) { return a.size() < b.size(); };
  const auto batches = micro_batches(flags.training.batch_shape(layout), 0);
  const auto micro_batch =
      static_cast<int64_t>(std::max_element(batches.begin(), batches.end(), largest)->size());
  const Simulation played =
      simulate(layout, schedules(flags, layout), std::vector<StageCost>(layout.stages().size()));
  ensure(played.complete, "the schedule does not end: {}", played.stuck);
  if (!session.first()) return 0;

  std::printf("%s, %lld parameters, %.3f GFLOP forward an image, %d replica%s of %d ranks\n\n",
              flags.model.options.name.c_str(), static_cast<long long>(graph.parameter_count()),
              static_cast<double>(flops_per_image(graph)) * 1e-9, layout.replicas(),
              layout.replicas() == 1 ? "" : "s", layout.group_size());
  std::printf(
      "the busiest rank of each stage, for one micro-batch of %lld (memory: for all alive at "
      "once):\n",
      static_cast<long long>(micro_batch));
  std::printf("%5s  %-7s %-9s %-34s %10s %10s %10s %9s %10s\n", "stage", "ranks", "grid", "cells",
              "GFLOP fwd", "redundant", "MiB", "messages", "MiB sent");
  for (int stage = 0; stage < static_cast<int>(layout.stages().size()); ++stage)
    print_stage(
        graph, layout, stage, trainer.cells[stage],
        StagePlan(graph, layout.stages()[stage], micro_batch, trainer.halo, trainer.cells[stage]),
        trainer.stage.recompute, played);
  std::printf(
      "\nschedule %s, forward 1 and backward 2 units of time: bubble %.0f %%, at most %d "
      "micro-batch%s alive\n%s",
      to_string(flags.training.schedule_kind()).c_str(), 100 * played.bubble,
      *std::max_element(played.peak_live.begin(), played.peak_live.end()),
      *std::max_element(played.peak_live.begin(), played.peak_live.end()) == 1 ? "" : "es",
      to_grid(played, layout.group_size()).c_str());
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* plan = app.add_subcommand(
      "plan",
      "Show on paper what a layout costs each rank: cells, work, memory, messages, schedule");
  plan->option_defaults()->always_capture_default();
  flags->model.add_to(*plan);
  flags->training.add_layout_flags(*plan);
  plan->add_option("--ranks", flags->ranks, "Ranks to plan for")
      ->check(at_least(1))
      ->default_str("one replica");
  plan->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_plan(session, *flags); };
  });
}

}  // namespace mpi4dl
