#include "base/nearest_name.hpp"

#include <algorithm>
#include <cctype>

namespace mpi4dl {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Returns the optimal string alignment distance: insertions, deletions, replacements and swaps of
/// neighbours.
size_t edit_distance(const std::string& a, const std::string& b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> table((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> size_t& { return table[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      at(i, j) = std::min(
          {at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  return table.back();
}

/// Returns the only candidate that begins so, or an empty string.
std::string only_one_with(const std::string& begin, const std::vector<std::string>& candidates) {
  constexpr size_t kTellsEnough = 3;
  if (begin.size() < kTellsEnough) return "";
  const auto begins_so = [&](const std::string& name) {
    return lower_case(name).starts_with(begin);
  };
  const auto found = std::find_if(candidates.begin(), candidates.end(), begins_so);
  if (found == candidates.end() || std::any_of(found + 1, candidates.end(), begins_so)) return "";
  return *found;
}

}  // namespace

std::string nearest_name(const std::string& typed, const std::vector<std::string>& candidates) {
  const std::string wanted = lower_case(typed);
  std::string nearest;
  size_t least = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() ? only_one_with(wanted, candidates) : nearest;
}

std::string suggestion(const std::string& typed, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(typed, candidates);
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

}  // namespace mpi4dl
