#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/units.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"
#include "train/comparison.hpp"

namespace mpi4dl {
namespace {

struct VerifyFlags {
  ModelFlags model;
  TrainingFlags training;
  int steps = 1;
  double tolerance = 1e-9;
  std::string json_file;
};

/// What all ranks together send, and the most memory that one of them needs.
struct Usage {
  int64_t messages = 0, bytes = 0, peak_bytes = 0;

  void add(const Usage& rank) {
    messages += rank.messages;
    bytes += rank.bytes;
    peak_bytes = std::max(peak_bytes, rank.peak_bytes);
  }
};

/// None where cells run twice: then they exchange some of their halos twice, too.
std::optional<Usage> planned_usage(const Graph& graph, const Layout& layout,
                                   const ProofOptions& options) {
  if (options.trainer.stage.recompute) return std::nullopt;
  const auto width = static_cast<int64_t>(c10::elementSize(options.trainer.type));
  Usage all;
  for (const MicroBatch& batch : all_micro_batches(options.batch)) {
    const PipelinePlan plan(graph, layout.stages(), options.trainer.cells,
                            static_cast<int64_t>(batch.size()), options.trainer.halo);
    const PipelinePlan::Cost cost = plan.cost();
    all.messages += cost.messages * options.steps;
    all.bytes += cost.elements * options.steps * width;
  }
  return all;
}

Usage measured_usage(const StepResult& mine, const Communicator& world) {
  Usage all;
  for (const Usage& theirs :
       all_gather(world, Usage{mine.sent.messages, mine.sent.bytes, mine.peak_bytes}))
    all.add(theirs);
  return all;
}

std::string describe(const Graph& graph, const Layout& layout, const ProofOptions& options,
                     const VerifyFlags& flags) {
  return fmt::format("{}, {} parameters, image {}, effective batch {}, {}, {} step{}\n{}",
                     flags.model.options.name, graph.parameter_count(), flags.model.image_size,
                     options.batch.effective(), flags.training.dtype, flags.steps,
                     flags.steps == 1 ? "" : "s",
                     describe_layout(graph, layout, options.trainer.cells, flags.training));
}

void print(const std::string& title, const nlohmann::ordered_json& result) {
  const auto planned = [&](const char* key) {
    return result.contains(key) ? fmt::format(" (planned {})", result[key].get<int64_t>()) : "";
  };
  std::printf("%s\n", title.c_str());
  std::printf("  loss                 %.15g\n", result["loss"].get<double>());
  std::printf("  loss on one rank     %.15g\n", result["loss_one_rank"].get<double>());
  std::printf("  messages sent        %lld%s\n", result["messages"].get<long long>(),
              planned("messages_planned").c_str());
  std::printf("  bytes sent           %lld%s\n", result["bytes"].get<long long>(),
              planned("bytes_planned").c_str());
  std::printf("  most memory a rank   %.1f MiB (one rank alone %.1f)\n",
              mebibytes(result["peak_bytes"].get<double>()),
              mebibytes(result["peak_bytes_one_rank"].get<double>()));
  std::printf("  max relative error   %.3g, in the %s\n",
              result["max_relative_error"].get<double>(),
              result["worst"].get<std::string>().c_str());
  if (!result["holders_agree"].get<bool>())
    std::printf("  ranks that hold the same parameters have different values of them\n");
  std::printf("%s: tolerance %g\n", result["equal"].get<bool>() ? "equal to one rank" : "NOT EQUAL",
              result["tolerance"].get<double>());
}

nlohmann::ordered_json make_report(const StepResult& result, const StepResult& expected,
                                   const Usage& used, const std::optional<Usage>& planned,
                                   double tolerance) {
  const Comparison comparison = compare(result, expected);
  const bool equal = comparison.max_relative_error <= tolerance && result.holders_agree;
  nlohmann::ordered_json report{{"equal", equal},
                                {"loss", result.loss},
                                {"loss_one_rank", expected.loss},
                                {"max_relative_error", comparison.max_relative_error},
                                {"worst", comparison.worst},
                                {"holders_agree", result.holders_agree},
                                {"tolerance", tolerance},
                                {"messages", used.messages},
                                {"bytes", used.bytes},
                                {"peak_bytes", used.peak_bytes},
                                {"peak_bytes_one_rank", expected.peak_bytes}};
  if (planned) {
    report["messages_planned"] = planned->messages;
    report["bytes_planned"] = planned->bytes;
  }
  return report;
}

void check(const VerifyFlags& flags, int ranks) {
  flags.training.check();
  validate(
      !flags.training.trainer.reduction.half,
      "--fp16-allreduce rounds gradients that travel between nodes, so they cannot equal those "
      "of one rank; verify without it");
  const Layout layout(flags.training.parallel.options, ranks);
  build_model(flags.model.model());
}

int run_verify(Session& session, const VerifyFlags& flags) {
  session.doing("building the model");
  const Communicator& world = session.world();
  const Layout layout(flags.training.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const ProofOptions options{flags.training.batch_shape(layout), flags.training.schedule_kind(),
                             flags.training.trainer_options(graph, layout), flags.steps};

  session.doing("training in this layout");
  const StepResult result = train_in_layout(graph, layout, options, world);
  const Usage used = measured_usage(result, world);
  session.doing("training on one rank");
  const auto alone = world.split(session.first() ? 0 : -1);
  int verdict = 0;
  if (alone) {
    const auto report = make_report(result, train_alone(graph, options, *alone), used,
                                    planned_usage(graph, layout, options), flags.tolerance);
    print(describe(graph, layout, options, flags), report);
    if (!flags.json_file.empty()) write_json(flags.json_file, report);
    verdict = report["equal"].get<bool>() ? 0 : 1;
  }
  at::Tensor everywhere = at::full({1}, verdict, at::kLong);
  world.broadcast(everywhere, 0);
  return static_cast<int>(everywhere.item<int64_t>());
}

}  // namespace

void add_verify(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<VerifyFlags>();
  flags->training.batch = 1;
  flags->training.dtype = "float64";
  flags->training.trainer.learning_rate.base = 0.01;
  CLI::App* verify = app.add_subcommand(
      "verify", "Train in a layout and on one rank, and compare loss, gradients and parameters");
  verify->option_defaults()->always_capture_default();
  flags->model.add_to(*verify);
  flags->training.add_layout_flags(*verify);
  flags->training.add_learning_flags(*verify);
  verify->add_option("--steps", flags->steps, "Optimizer steps")->check(at_least(1));
  verify->option_defaults()->group("Reports");
  verify->add_option("--tolerance", flags->tolerance, "Exit 1 where the largest error exceeds this")
      ->check(at_least(0));
  verify->add_option("--json", flags->json_file, "Write the result to this file");
  verify->callback([flags, &chosen] {
    chosen.check = [flags](int ranks) { check(*flags, ranks); };
    chosen.run = [flags](Session& session) { return run_verify(session, *flags); };
  });
}

}  // namespace mpi4dl
