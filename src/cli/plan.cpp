#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/model_flags.hpp"
#include "cli/planned_run.hpp"
#include "cli/remedies.hpp"
#include "cli/trained_settings.hpp"
#include "report/json_file.hpp"

namespace mpi4dl {
namespace {

struct PlanFlags {
  ModelFlags model;
  TrainingFlags training;
  int ranks = 0;           // 0: one replica
  std::string checkpoint;  // empty: the model is as its flags say
  int workers = 0;
  bool on_device = false;
  std::optional<std::string> memory;  // not given: no limit is asked about
  std::string json_file;

  /// Returns the place that was asked for, or else the session's.
  PlannedPlace place(const Session& session) const {
    return on_device ? PlannedPlace{Kernels::composed, true} : place_of(session);
  }
};

MemoryAnswer answer(const Graph& graph, const PlanFlags& flags, const PlannedPlace& place,
                    const PlannedRun& run, int64_t limit) {
  const bool fits = run.most() <= limit;
  return {limit, fits,
          fits ? Remedies{} : find_remedies(graph, flags.training, flags.workers, place, limit)};
}

std::optional<int64_t> limit_of(const PlanFlags& flags) {
  if (!flags.memory) return std::nullopt;
  return parse_byte_size("--memory", *flags.memory);
}

/// Plans on one rank, for arithmetic needs no more; the others only end as it does.
int run_plan(Session& session, PlanFlags& flags, CLI::App& command) {
  session.doing("planning");
  validate(!std::filesystem::is_regular_file(flags.checkpoint),
           "{} has weights, but does not say of which model; give its flags instead (--checkpoint)",
           flags.checkpoint);
  adopt_settings(flags.checkpoint, command, model_settings(flags.model, {}), flags.model);
  const std::optional<int64_t> limit = limit_of(flags);
  const Model model = flags.model.build();
  const Graph graph = flags.training.tuning.frozen(model.graph);
  const PlannedPlace place = flags.place(session);
  const PlannedRun run = plan_run(graph, flags.training, flags.ranks, flags.workers, place);
  if (session.first()) {
    PlanReport report{model.name, graph, run, run.simulate_step(), run.costs(), {}};
    if (limit) report.answer = answer(graph, flags, place, run, *limit);
    print(report);
    if (!flags.json_file.empty()) write_json(flags.json_file, to_json(report));
  }
  return limit && run.most() > *limit ? 1 : 0;
}

}  // namespace

void add_plan(CLI::App& app, Command& chosen) {
  auto [plan, flags] = add_command<PlanFlags>(
      app, chosen, "plan",
      "Dry run: show what a layout would cost each rank: cells, work, memory, messages, schedule",
      run_plan, [](const PlanFlags& given, int /*ranks*/) {
        given.training.check();
        limit_of(given);
      });
  add_checkpoint_flag(plan, flags.checkpoint)
      ->description("Plan for the model of this checkpoint, or of the newest one in a folder");
  flags.model.add_to(plan);
  flags.training.add_layout_flags(plan);
  default_in_words(plan.add_option("--ranks", flags.ranks, "Ranks to plan for")->check(at_least(1)),
                   "one replica");
  flags.training.add_state_flags(plan);
  plan.option_defaults()->group("Memory");
  default_in_words(
      plan.add_option(
          "--memory", flags.memory,
          "Memory that each rank has, or its device, such as 32G, 512M or 40GB: whether "
          "that is enough (exit code 0) or not (1), and then what would be"),
      "not asked");
  plan.add_flag("--on-device", flags.on_device,
                "Plan for ranks that each compute on a device, which this machine need not have: "
                "memory of the device and of the host");
  plan.add_option("--num-workers", flags.workers, "Threads of each rank that load images ahead")
      ->check(at_least(0));
  plan.option_defaults()->group("Reports");
  plan.add_option("--json", flags.json_file, "Write the plan to this file");
}

}  // namespace mpi4dl
