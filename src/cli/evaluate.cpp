#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/add_command.hpp"
#include "cli/inference.hpp"
#include "report/confusion_table.hpp"
#include "report/json_file.hpp"
#include "report/metrics_json.hpp"

namespace mpi4dl {
namespace {

struct EvaluateFlags {
  InferenceFlags inference;
  std::string json_file;
};

std::vector<std::string> class_names(const Inference& inference, size_t count) {
  std::vector<std::string> names;
  for (size_t label = 0; label < count; ++label)
    names.push_back(inference.class_text(static_cast<int64_t>(label)));
  return names;
}

int run_evaluate(Session& session, EvaluateFlags& flags, CLI::App& command) {
  const Inference inference = run_inference(session, flags.inference, command);
  const Metrics metrics = measure(inference.predictions, *inference.data, inference.bad);
  if (!session.first()) return 0;
  fmt::print("{}{}, {}, in {:.1f} s\n", describe(metrics), inference.left_out_text(),
             inference.part_text(), inference.seconds);
  constexpr size_t kReadable = 20;
  if (const size_t classes = metrics.confusion.size(); classes <= kReadable)
    fmt::print("{}", confusion_table(metrics, class_names(inference, classes)));
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
  auto [evaluate, flags] = add_command<EvaluateFlags>(
      app, chosen, "evaluate",
      "Measure loss, accuracy and AUC of a trained model on labelled images, in any layout",
      run_evaluate, [](const EvaluateFlags& given, int ranks) { given.inference.check(ranks); });
  flags.inference.add_to(evaluate);
  evaluate.option_defaults()->group("Reports");
  evaluate.add_option("--json", flags.json_file, "Write the result to this file");
}

}  // namespace mpi4dl
