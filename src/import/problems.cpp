#include "import/problems.hpp"

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns "layer1.0.conv1 (net.py:13)".
std::string place_of(const Call& call) {
  const std::string module = call.module.empty() ? "the model itself" : call.module;
  return call.source.empty() ? module : fmt::format("{} ({})", module, call.source);
}

std::string name_of(const std::string& target) {
  return target.find('.') == std::string::npos ? "aten." + target : target;
}

}  // namespace

void Problems::add(const Call& call, const std::string& reason) {
  const auto [place, is_new] = places_.emplace(std::pair(call.target, reason), problems_.size());
  if (is_new) problems_.push_back({call.target, reason, place_of(call)});
  ++problems_[place->second].count;
}

void Problems::add_unknown(const Call& call) {
  add(call, "it is not known");
}

void Problems::check(const Program& program) const {
  if (problems_.empty()) return;
  std::string text;
  for (const Problem& problem : problems_)
    text += fmt::format("\n  {} in {}{}: {}", name_of(problem.target), problem.first,
                        problem.count == 1 ? "" : fmt::format(", {} times", problem.count),
                        problem.reason);
  if (program.decomposed)
    text +=
        "\n  the file's operators are decomposed, as PyTorch 2.5 and run_decompositions() leave "
        "them; export with PyTorch 2.6 or newer, without run_decompositions()";
  throw UsageError(fmt::format("operators cannot be imported:{}", text));
}

}  // namespace mpi4dl
