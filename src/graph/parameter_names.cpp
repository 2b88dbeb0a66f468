#include "graph/parameter_names.hpp"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace mpi4dl {
namespace {

std::vector<std::string> names_of(const Graph& graph, AmongParameters among) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters)
      if (among == AmongParameters::all || parameter.trained()) names.push_back(parameter.name);
  return names;
}

/// Returns what patterns are likely to be: names, and "layer1.*" for each module of them.
std::vector<std::string> likely_patterns(const std::vector<std::string>& names) {
  std::vector<std::string> likely = names;
  for (const std::string& name : names) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      likely.push_back(fmt::format("{}.*", name.substr(0, dot)));
    if (const size_t dot = name.rfind('.'); dot != std::string::npos)
      likely.push_back(fmt::format("*{}", name.substr(dot)));
  }
  std::ranges::sort(likely);
  likely.erase(std::unique(likely.begin(), likely.end()), likely.end());
  return likely;
}

/// Returns the pattern that was meant, or some names where nothing is near.
std::string advice(const std::string& pattern, std::vector<std::string> names) {
  if (const std::string near = suggestion(pattern, likely_patterns(names)); !near.empty())
    return near;
  constexpr size_t kSome = 4;
  const bool more = names.size() > kSome;
  names.resize(std::min(names.size(), kSome));
  return fmt::format("; there are {}{}", fmt::join(names, ", "), more ? ", ..." : "");
}

}  // namespace

std::set<std::string> matching_parameters(const Graph& graph, const std::string& pattern,
                                          AmongParameters among, const std::string& what) {
  const std::vector<std::string> names = names_of(graph, among);
  std::set<std::string> found;
  for (const std::string& name : names)
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) found.insert(name);
  validate(!found.empty(), "{} matches no {}parameter of the model{}", what,
           among == AmongParameters::trained ? "trained " : "", advice(pattern, names));
  return found;
}

std::set<std::string> constant_parameters(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    const auto* norm = std::get_if<BatchNorm>(&node.op);
    const bool stays = norm != nullptr && norm->frozen;
    for (const Parameter& parameter : node.parameters)
      if (parameter.kind == ParameterKind::frozen || (stays && parameter.statistic()))
        names.insert(parameter.name);
  }
  return names;
}

}  // namespace mpi4dl
