#include "cli/fine_tuning_flags.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "graph/edit.hpp"
#include "graph/parameter_names.hpp"

namespace mpi4dl {
namespace {

/// Reads PATTERN=NUMBER.
std::pair<std::string, double> read_rule(const std::string& flag, const std::string& rule) {
  const size_t equals = rule.rfind('=');
  const std::string number = equals == std::string::npos ? "" : rule.substr(equals + 1);
  double value = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  validate(equals != std::string::npos && equals > 0 && error == std::errc() &&
               end == number.data() + number.size() && std::isfinite(value) && value >= 0,
           "{} '{}' is not PATTERN=NUMBER with a number of at least 0, such as 'head.*=10'", flag,
           rule);
  return {rule.substr(0, equals), value};
}

std::map<std::string, double> apply_rules(const std::string& flag,
                                          const std::vector<std::string>& rules,
                                          const Graph& graph) {
  std::map<std::string, double> values;
  for (const std::string& rule : rules) {
    const auto [pattern, value] = read_rule(flag, rule);
    for (const std::string& name : matching_parameters(graph, pattern, AmongParameters::trained,
                                                       fmt::format("{} '{}'", flag, pattern)))
      values[name] = value;
  }
  return values;
}

CLI::Option* add_patterns(CLI::App& command, const std::string& flag,
                          std::vector<std::string>& patterns, const std::string& help) {
  return command.add_option(flag, patterns, help)->delimiter(',')->allow_extra_args(false);
}

}  // namespace

void FineTuningFlags::add_freezing_to(CLI::App& command) {
  add_patterns(command, "--freeze", freeze,
               "Parameters that stay as they are, without gradient or optimizer memory: names such "
               "as 'layer1.*', where * is anything");
  command.add_flag("--freeze-batch-norm", freeze_batch_norm,
                   "Batch norms normalise by their running statistics and stay as they are");
}

void FineTuningFlags::add_factors_to(CLI::App& command) {
  add_patterns(command, "--lr-factor-for", rate_factors,
               "Multiply the learning rate of some parameters: PATTERN=NUMBER, such as "
               "'head.*=10'");
  add_patterns(command, "--weight-decay-for", weight_decays,
               "Weight decay of some parameters, instead of --weight-decay: PATTERN=NUMBER, such "
               "as '*.bias=0'");
}

Graph FineTuningFlags::frozen(const Graph& graph) const {
  Graph result = freeze_batch_norm ? with_frozen_batch_norms(graph) : graph;
  std::set<std::string> names;
  for (const std::string& pattern : freeze)
    names.merge(matching_parameters(graph, pattern, AmongParameters::trained,
                                    fmt::format("--freeze '{}'", pattern)));
  return names.empty() ? result : with_frozen(result, names);
}

void FineTuningFlags::set(OptimizerOptions& optimizer, const Graph& graph) const {
  optimizer.rate_factors = apply_rules("--lr-factor-for", rate_factors, graph);
  optimizer.weight_decays = apply_rules("--weight-decay-for", weight_decays, graph);
}

}  // namespace mpi4dl
