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

/// Columns are as wide as the names of classes.
void print_confusion(const Metrics& metrics, const Inference& inference) {
  std::vector<std::string> names;
  size_t row = 8, column = 7;  // at least
  for (size_t i = 0; i < metrics.confusion.size(); ++i) {
    names.push_back(inference.class_text(static_cast<int64_t>(i)));
    row = std::max(row, names.back().size());
    column = std::max(column, names.back().size() + 3);
  }
  std::string text = fmt::format("{:>{}}", "label", row);
  for (const std::string& name : names) text += fmt::format(" {:>{}}", "as " + name, column);
  text += fmt::format(" {:>9}\n", "AUC");
  for (size_t label = 0; label < names.size(); ++label) {
    text += fmt::format("{:>{}}", names[label], row);
    for (const int64_t count : metrics.confusion[label])
      text += fmt::format(" {:>{}}", count, column);
    const std::optional<double> area = metrics.auc.empty() ? std::nullopt : metrics.auc[label];
    text += fmt::format(" {:>9}\n", area ? fmt::format("{:.4f}", *area) : "-");
  }
  std::printf("%s", text.c_str());
}

int run_evaluate(Session& session, EvaluateFlags& flags, CLI::App& command) {
  const Inference inference = run_inference(session, flags.inference, command);
  const Metrics metrics = measure(inference.predictions, *inference.data, inference.bad);
  if (!session.first()) return 0;
  std::printf("%s%s in %.1f s\n", describe(metrics).c_str(), inference.left_out_text().c_str(),
              inference.seconds);
  constexpr size_t kReadable = 20;
  if (metrics.confusion.size() <= kReadable) print_confusion(metrics, inference);
  if (!flags.json_file.empty()) {
    nlohmann::ordered_json result = to_json(metrics);
    result["classes"] = inference.classes;
    result["left_out"] = inference.bad.size();
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
  evaluate->callback([flags, evaluate, &chosen] {
    chosen.check = [flags](int ranks) { flags->inference.check(ranks); };
    chosen.run = [flags, evaluate](Session& session) {
      return run_evaluate(session, *flags, *evaluate);
    };
  });
}

}  // namespace mpi4dl
