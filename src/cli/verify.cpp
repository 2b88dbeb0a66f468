#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/model_flags.hpp"
#include "cli/parallel_flags.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"
#include "plan/memory.hpp"
#include "train/comparison.hpp"

namespace mpi4dl {
namespace {

struct VerifyFlags {
  ModelFlags model;
  StepOptions step;
  int splits = 1;
  int parts = 0;  // 0: as many as ranks
  std::string slice_method = "square";
  std::string batch_norm = "global";
  std::string dtype = "float64";
  double tolerance = 1e-9;
  std::string json_file;
};

const std::map<std::string, BatchNormScope> kScopes{{"global", BatchNormScope::global},
                                                    {"local", BatchNormScope::local},
                                                    {"replicas", BatchNormScope::replicas}};
const std::map<std::string, c10::ScalarType> kTypes{{"float64", c10::ScalarType::Double},
                                                    {"float32", c10::ScalarType::Float},
                                                    {"bfloat16", c10::ScalarType::BFloat16}};

constexpr double kMiB = 1024.0 * 1024.0;

template <typename T>
std::vector<std::string> names(const std::map<std::string, T>& choices) {
  std::vector<std::string> all;
  for (const auto& [name, value] : choices) all.push_back(name);
  return all;
}

StepOptions layout_of(const VerifyFlags& flags, int ranks) {
  const int parts = flags.parts == 0 ? ranks : flags.parts;
  validate(flags.splits == 1, "--split-size {}: verify runs one split", flags.splits);
  validate(
      parts == ranks,
      "--split-size 1 with --num-spatial-parts {} needs {} ranks, not {}; start with mpirun -np {}",
      parts, parts, ranks, parts);
  check_halo_flags(flags.step.halo);
  StepOptions step = flags.step;
  step.grid = slice(flags.slice_method, parts);
  step.batch_norm = kScopes.at(flags.batch_norm);
  step.type = kTypes.at(flags.dtype);
  return step;
}

/// What all ranks together send, and the most memory that one of them needs.
struct Usage {
  int64_t messages = 0, bytes = 0, peak_bytes = 0;

  void add(const Usage& rank) {
    messages += rank.messages;
    bytes += rank.bytes;
    peak_bytes = std::max(peak_bytes, rank.peak_bytes);
  }
};

Usage planned_usage(const Graph& graph, const StepOptions& step) {
  const StagePlan plan(graph, step.grid, step.batch, step.halo);
  const auto width = static_cast<int64_t>(c10::elementSize(step.type));
  Usage all;
  for (int rank = 0; rank < step.grid.size(); ++rank) {
    const RankCost cost = plan.cost(rank);
    all.add({cost.messages * step.steps, cost.elements_sent * step.steps * width,
             activation_bytes(plan, rank, width)});
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

void print(const Graph& graph, const VerifyFlags& flags, const StepOptions& step,
           const nlohmann::ordered_json& result) {
  std::printf(
      "%s, %lld parameters, image %s, batch %lld, tiles %s, %s, batch norm %s, %s, %d step%s\n",
      flags.model.options.name.c_str(), static_cast<long long>(graph.parameter_count()),
      flags.model.image_size.c_str(), static_cast<long long>(step.batch),
      to_string(step.grid).c_str(),
      step.halo.fused ? fmt::format("D2 with {} fused", step.halo.fused_layers).c_str()
                      : "halos at every layer",
      flags.batch_norm.c_str(), flags.dtype.c_str(), step.steps, step.steps == 1 ? "" : "s");
  std::printf("  loss                 %.15g\n", result["loss"].get<double>());
  std::printf("  loss on one rank     %.15g\n", result["loss_one_rank"].get<double>());
  std::printf("  messages sent        %lld (planned %lld)\n", result["messages"].get<long long>(),
              result["messages_planned"].get<long long>());
  std::printf("  bytes sent           %lld (planned %lld)\n", result["bytes"].get<long long>(),
              result["bytes_planned"].get<long long>());
  std::printf("  most memory a rank   %.1f MiB (planned %.1f)\n",
              result["peak_bytes"].get<double>() / kMiB,
              result["peak_bytes_planned"].get<double>() / kMiB);
  std::printf("  max relative error   %.3g, in the %s\n",
              result["max_relative_error"].get<double>(),
              result["worst"].get<std::string>().c_str());
  std::printf("%s: tolerance %g\n", result["equal"].get<bool>() ? "equal to one rank" : "NOT EQUAL",
              flags.tolerance);
}

int run_verify(Session& session, const VerifyFlags& flags) {
  session.doing("building the model");
  const Communicator& world = session.world();
  const StepOptions step = layout_of(flags, world.size());
  const Graph graph = build_model(flags.model.model());

  session.doing("training in this layout");
  const StepResult result = run_steps(graph, step, world);
  const Usage used = measured_usage(result, world);
  session.doing("training on one rank");
  const auto alone = world.split(session.first() ? 0 : -1);
  int verdict = 0;
  if (alone) {
    StepOptions one_rank = step;
    one_rank.grid = {};
    const StepResult expected = run_steps(graph, one_rank, *alone);
    const Comparison comparison = compare(result, expected);
    const Usage planned = planned_usage(graph, step);
    const bool equal = comparison.max_relative_error <= flags.tolerance;
    nlohmann::ordered_json report{{"equal", equal},
                                  {"loss", result.loss},
                                  {"loss_one_rank", expected.loss},
                                  {"max_relative_error", comparison.max_relative_error},
                                  {"worst", comparison.worst},
                                  {"tolerance", flags.tolerance},
                                  {"messages", used.messages},
                                  {"messages_planned", planned.messages},
                                  {"bytes", used.bytes},
                                  {"bytes_planned", planned.bytes},
                                  {"peak_bytes", used.peak_bytes},
                                  {"peak_bytes_planned", planned.peak_bytes}};
    print(graph, flags, step, report);
    if (!flags.json_file.empty()) write_json(flags.json_file, report);
    verdict = equal ? 0 : 1;
  }
  at::Tensor everywhere = at::full({1}, verdict, at::kLong);
  world.broadcast(everywhere, 0);
  return static_cast<int>(everywhere.item<int64_t>());
}

}  // namespace

void add_verify(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verify = app.add_subcommand(
      "verify", "Train in a layout and on one rank, and compare loss, gradients and statistics");
  verify->option_defaults()->always_capture_default();
  flags->model.add_to(*verify);
  verify->add_option("--batch-size", flags->step.batch, "Images")->check(at_least(1));
  verify->add_option("--split-size", flags->splits, "Splits of the model")->check(at_least(1));
  verify->add_option("--num-spatial-parts", flags->parts, "Tiles, one rank each")
      ->check(at_least(1))
      ->default_str("number of ranks");
  verify->add_option("--slice-method", flags->slice_method,
                     "square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  add_halo_flags(*verify, flags->step.halo);
  verify
      ->add_option("--batch-norm", flags->batch_norm,
                   "Statistics over the whole image (global), each tile (local) or all replicas")
      ->check(CLI::IsMember(names(kScopes)));
  verify->add_option("--dtype", flags->dtype, "Type of numbers")
      ->check(CLI::IsMember(names(kTypes)));
  verify->add_option("--steps", flags->step.steps, "Training steps")->check(at_least(1));
  verify->add_option("--seed", flags->step.seed, "Of weights, images and labels");
  verify->add_option("--tolerance", flags->tolerance, "Exit 1 where the largest error exceeds this")
      ->check(at_least(0));
  verify->add_option("--json", flags->json_file, "Write the result to this file");
  verify->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_verify(session, *flags); };
  });
}

}  // namespace mpi4dl
