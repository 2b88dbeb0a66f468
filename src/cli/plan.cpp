#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "cli/byte_size.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/model_flags.hpp"
#include "cli/plan_report.hpp"
#include "cli/trained_settings.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"

namespace mpi4dl {
namespace {

struct PlanFlags {
  ModelFlags model;
  TrainingFlags training;
  int ranks = 0;           // 0: one replica
  std::string checkpoint;  // empty: the model is as its flags say
  int workers = 0;
  bool has_limit = false;
  std::string memory;
  std::string json_file;
};

Simulation play(const PlannedRun& run) {
  const auto stages = run.layout.stages().size();
  const PipelineShape shape{static_cast<int>(stages), run.options.batch.parts,
                            run.options.batch.times};
  std::vector<Schedule> by_rank;
  for (int rank = 0; rank < run.layout.group_size(); ++rank)
    by_rank.push_back(make_schedule(run.options.schedule, shape, run.layout.roles(rank)[0].stage));
  Simulation played = simulate(run.layout, by_rank, std::vector<StageCost>(stages));
  ensure(played.complete, "the schedule does not end: {}", played.stuck);
  return played;
}

std::vector<RankCost> costs(const PipelinePlan& plan) {
  std::vector<RankCost> stages;
  for (const StagePlan& stage : plan.stages()) {
    RankCost& most = stages.emplace_back();
    for (int rank = 0; rank < stage.grid().size(); ++rank) {
      const RankCost cost = stage.cost(rank);
      most.flops = std::max(most.flops, cost.flops);
      most.redundant_flops = std::max(most.redundant_flops, cost.redundant_flops);
      most.messages = std::max(most.messages, cost.messages);
      most.elements_sent = std::max(most.elements_sent, cost.elements_sent);
    }
  }
  return stages;
}

MemoryAnswer answer(const Graph& graph, const PlanFlags& flags, const PlannedRun& run,
                    int64_t limit) {
  const bool fits = run.most() <= limit;
  return {limit, fits,
          fits ? Remedies{} : find_remedies(graph, flags.training, flags.workers, limit)};
}

std::optional<int64_t> limit_of(const PlanFlags& flags) {
  if (!flags.has_limit) return std::nullopt;
  return parse_byte_size("--memory", flags.memory);
}

/// Arithmetic needs one rank; the others only end as it does.
int run_plan(Session& session, PlanFlags& flags, CLI::App& command) {
  session.doing("planning");
  adopt_settings(flags.checkpoint, command, model_settings(flags.model, {}));
  const std::optional<int64_t> limit = limit_of(flags);
  const Graph graph = build_model(flags.model.model());
  const PlannedRun run(graph, flags.training, flags.ranks, flags.workers);
  if (session.first()) {
    const Simulation played = play(run);
    PlanReport report{flags.model.options.name, graph, run, played, costs(run.plan), {}};
    if (limit) report.answer = answer(graph, flags, run, *limit);
    print(report);
    if (!flags.json_file.empty()) write_json(flags.json_file, to_json(report));
  }
  return limit && run.most() > *limit ? 1 : 0;
}

}  // namespace

void add_plan(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* plan = app.add_subcommand(
      "plan",
      "Show without running it what a layout costs each rank: cells, work, memory, messages, "
      "schedule");
  plan->option_defaults()->always_capture_default();
  add_checkpoint_flag(*plan, flags->checkpoint)
      ->description("Plan for the model of this checkpoint, or of the newest one in a folder");
  flags->model.add_to(*plan);
  flags->training.add_layout_flags(*plan);
  default_in_words(
      plan->add_option("--ranks", flags->ranks, "Ranks to plan for")->check(at_least(1)),
      "one replica");
  flags->training.add_state_flags(*plan);
  plan->option_defaults()->group("Memory");
  const CLI::Option* memory = default_in_words(
      plan->add_option("--memory", flags->memory,
                       "Memory that each rank has, such as 32G, 512M or 40GB: whether that is "
                       "enough (exit code 0) or not (1), and then what would be"),
      "not asked");
  plan->add_option("--num-workers", flags->workers, "Threads of each rank that read images ahead")
      ->check(at_least(0));
  plan->option_defaults()->group("Reports");
  plan->add_option("--json", flags->json_file, "Write the plan to this file");
  plan->callback([flags, memory, plan, &chosen] {
    flags->has_limit = memory->count() > 0;
    chosen.check = [flags](int /*ranks*/) {
      flags->training.check();
      limit_of(*flags);
    };
    chosen.run = [flags, plan](Session& session) { return run_plan(session, *flags, *plan); };
  });
}

}  // namespace mpi4dl
