#include "cli/run_config.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "cli/config_file.hpp"
#include "cli/model_flags.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a number as a number, anything else as text.
Json value_of(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() ? parsed : Json(text);
}

Json value_of(const CLI::Option& option) {
  const bool is_switch = option.get_expected_max() == 0;
  if (is_switch) return option.count() > 0;
  if (option.count() == 0 && option.get_default_str().empty()) return nullptr;
  if (option.count() == 0) return value_of(option.get_default_str());
  const std::vector<std::string> values = option.reduced_results();
  return value_of(CLI::detail::join(values, ","));
}

/// Adds the flags of a command that a config file may have.
void add_options(const CLI::App& command, Json& options) {
  for (const CLI::Option* option : command.get_options())
    if (!option->get_lnames().empty() && option->get_configurable())
      options[option->get_lnames()[0]] = value_of(*option);
}

Json layout_of(const Layout& layout, const std::vector<CellRange>& cells,
               const TrainingFlags& flags) {
  Json stages = Json::array();
  for (size_t i = 0; i < cells.size(); ++i)
    stages.push_back(
        {{"grid", to_string(layout.stages()[i])}, {"cells", cells[i].last - cells[i].first}});
  const BatchShape batch = flags.batch_shape(layout);
  return {{"ranks", layout.replicas() * layout.group_size()},
          {"replicas", layout.replicas()},
          {"directions", layout.directions()},
          {"stages", stages},
          {"schedule", to_string(flags.schedule_kind())},
          {"micro_batches", batch.parts * batch.times},
          {"effective_batch", batch.effective()}};
}

}  // namespace

std::string run_config(const CLI::App& command, const Graph& graph, const Layout& layout,
                       const std::vector<CellRange>& cells, const TrainingFlags& flags) {
  Json options = Json::object();
  add_options(program_of(command), options);
  add_options(command, options);
  // Those of a model's file, where the flags were not given.
  options["image-size"] = value_of(image_size_text(graph));
  options["num-classes"] = graph.node(graph.output()).shape.channels;
  const Json config{{"version", kVersion},
                    {"command", command.get_name()},
                    {"options", options},
                    {"model",
                     {{"parameters", graph.parameter_count()},
                      {"cells", graph.cells().size()},
                      {"image", graph.shape(graph.input()).space}}},
                    {"layout", layout_of(layout, cells, flags)}};
  return config.dump(2) + '\n';
}

std::string replay_config(const CLI::App& command, int ranks, int threads,
                          const std::string& resumed_from) {
  std::vector<std::string> left_out{"run-dir",          "json-log", "checkpoint-dir",
                                    "checkpoint-every", "keep",     "resume"};
  // It says already which weights there are.
  if (!resumed_from.empty()) left_out.emplace_back("checkpoint");
  std::string text = fmt::format(
      "# mpi4dl {}, started in {} with {} thread{} a rank; with as many it repeats the run:\n"
      "# {}mpi4dl --config THIS_FILE {}\n{}",
      kVersion, std::filesystem::current_path().string(), threads, threads == 1 ? "" : "s",
      ranks == 1 ? "" : fmt::format("mpirun -np {} ", ranks), command.get_name(),
      given_flags(command, left_out));
  if (!resumed_from.empty()) text += fmt::format("resume = \"{}\"\n", resumed_from);
  return text;
}

}  // namespace mpi4dl
