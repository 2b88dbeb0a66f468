#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "cli/device_memory.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "comm/collectives.hpp"
#include "report/json_file.hpp"
#include "report/verification_report.hpp"

namespace mpi4dl {
namespace {

struct VerifyFlags {
  ModelFlags model;
  TrainingFlags training;
  int steps = 1;
  double tolerance = 1e-9;
  std::string json_file;
};

void check_verify(const VerifyFlags& flags, int ranks) {
  flags.training.check();
  validate(
      !flags.training.trainer.reduction.half,
      "--fp16-allreduce rounds gradients that travel between nodes, so they cannot equal those "
      "of one rank; verify without it");
  const Layout layout(flags.training.parallel.options, ranks);
  OptimizerOptions options;
  flags.training.tuning.set(options, flags.training.tuning.frozen(flags.model.build().graph));
}

std::string describe(const Graph& graph, const Layout& layout, const VerificationOptions& options,
                     const VerifyFlags& flags) {
  return fmt::format("{}, {} parameters, image {}, effective batch {}, {}, {} step{}\n{}",
                     flags.model.options.name, graph.parameter_count(), image_size_text(graph),
                     options.batch.effective(), flags.training.dtype, flags.steps,
                     flags.steps == 1 ? "" : "s",
                     describe_layout(graph, layout, options.trainer.cells, flags.training));
}

int run_verify(Session& session, const VerifyFlags& flags) {
  session.doing("building the model");
  const Communicator& world = session.world();
  const Layout layout(flags.training.parallel.options, world.size());
  const Graph graph = flags.training.tuning.frozen(flags.model.build().graph);
  const VerificationOptions options{flags.training.batch_shape(layout),
                                    flags.training.schedule_kind(),
                                    flags.training.trainer_options(graph, layout), flags.steps};

  session.doing("training in this layout");
  const StepResult result = train_in_layout(graph, layout, options, world);
  const Usage used = measured_usage(result, world);
  session.doing("training on one rank");
  const auto alone = world.split(session.first() ? 0 : -1);
  int verdict = 0;
  if (alone) {
    const nlohmann::ordered_json report =
        verification_report(result, train_alone(graph, options, *alone), used,
                            planned_usage(graph, layout, options), flags.tolerance);
    print_verification(describe(graph, layout, options, flags), report);
    if (!flags.json_file.empty()) write_json(flags.json_file, report);
    verdict = report["equal"].get<bool>() ? 0 : 1;
  }
  at::Tensor everywhere = at::full({1}, verdict, at::kLong);
  broadcast(everywhere, world, 0);
  return static_cast<int>(everywhere.item<int64_t>());
}

}  // namespace

void add_verify(CLI::App& app, Command& chosen) {
  auto [verify, flags] = add_command<VerifyFlags>(
      app, chosen, "verify",
      "Train in a layout and on one rank, and compare loss, gradients and parameters",
      [](Session& session, const VerifyFlags& given) {
        return with_planned_memory(
            session, [&] { return given.model.build().graph; }, given.training,
            [&] { return run_verify(session, given); });
      },
      check_verify);
  flags.training.batch = 1;
  flags.training.dtype = "float64";
  flags.training.trainer.learning_rate.base = 0.01;
  flags.model.add_to(verify);
  flags.training.add_layout_flags(verify);
  flags.training.add_learning_flags(verify);
  verify.add_option("--steps", flags.steps, "Optimizer steps")->check(at_least(1));
  verify.option_defaults()->group("Reports");
  verify.add_option("--tolerance", flags.tolerance, "Exit 1 where the largest error exceeds this")
      ->check(at_least(0));
  verify.add_option("--json", flags.json_file, "Write the result to this file");
}

}  // namespace mpi4dl
