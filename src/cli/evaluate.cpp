#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.hpp"
#include "cli/inference.hpp"
#include "cli/json_file.hpp"
#include "cli/metrics_json.hpp"

namespace mpi4dl {
namespace {

struct EvaluateFlags {
  InferenceFlags inference;
  std::string json_file;
};

void print_confusion(const Metrics& metrics) {
  const auto classes = static_cast<int>(metrics.confusion.size());
  std::printf("%8s", "label");
  for (int i = 0; i < classes; ++i) std::printf(" %7s", fmt::format("as {}", i).c_str());
  std::printf(" %9s\n", "AUC");
  for (int label = 0; label < classes; ++label) {
    std::printf("%8d", label);
    for (const int64_t count : metrics.confusion[label])
      std::printf(" %7lld", static_cast<long long>(count));
    const std::optional<double> area = metrics.auc.empty() ? std::nullopt : metrics.auc[label];
    std::printf(" %9s\n", area ? fmt::format("{:.4f}", *area).c_str() : "-");
  }
}

int run_evaluate(Session& session, const EvaluateFlags& flags) {
  const Inference inference = run_inference(session, flags.inference);
  const Metrics metrics = measure(inference.predictions, *inference.data);
  if (!session.first()) return 0;
  std::printf("%s in %.1f s\n", describe(metrics).c_str(), inference.seconds);
  constexpr size_t kReadable = 20;
  if (metrics.confusion.size() <= kReadable) print_confusion(metrics);
  if (!flags.json_file.empty()) {
    nlohmann::ordered_json result = to_json(metrics);
    result["seconds"] = inference.seconds;
    write_json(flags.json_file, result);
  }
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* evaluate = app.add_subcommand(
      "evaluate", "Measure how well a trained model knows labelled images, in any layout");
  evaluate->option_defaults()->always_capture_default();
  flags->inference.add_to(*evaluate);
  evaluate->option_defaults()->group("Reports");
  evaluate->add_option("--json", flags->json_file, "Write the result to this file");
  evaluate->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_evaluate(session, *flags); };
  });
}

}  // namespace mpi4dl
