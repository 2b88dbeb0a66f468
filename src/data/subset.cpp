#include "data/subset.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/random.hpp"

namespace mpi4dl {
namespace {

/// Holds samples that stay together.
struct Group {
  uint64_t key = 0;
  std::vector<size_t> samples;
};

std::vector<Group> groups_of(std::span<const uint64_t> keys) {
  std::vector<Group> groups;
  std::unordered_map<uint64_t, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [place, fresh] = places.try_emplace(keys[i], groups.size());
    if (fresh) groups.push_back({keys[i], {}});
    groups[place->second].samples.push_back(i);
  }
  return groups;
}

/// Returns the label that most samples of a group have; the smallest where several do.
int64_t main_label(const Group& group, std::span<const int64_t> labels) {
  std::map<int64_t, size_t> counts;
  for (const size_t sample : group.samples) ++counts[labels[sample]];
  return std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })
      ->first;
}

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> all, std::vector<int64_t> samples)
    : all_(std::move(all)), samples_(std::move(samples)) {}

std::vector<bool> hold_out(std::span<const int64_t> labels, std::span<const uint64_t> keys,
                           double fraction) {
  std::map<int64_t, std::vector<Group>> classes;
  for (Group& group : groups_of(keys))
    classes[main_label(group, labels)].push_back(std::move(group));
  std::vector<bool> held(labels.size());
  for (auto& [label, groups] : classes) {
    std::ranges::stable_sort(groups, {}, [](const Group& group) { return mix(group.key); });
    size_t all = 0, count = 0;
    for (const Group& group : groups) all += group.samples.size();
    for (const Group& group : groups) {
      const double middle =
          static_cast<double>(count) + static_cast<double>(group.samples.size()) / 2;
      if (middle > fraction * static_cast<double>(all)) break;  // with it, it would be further off
      for (const size_t sample : group.samples) held[sample] = true;
      count += group.samples.size();
    }
  }
  return held;
}

DataParts split(std::shared_ptr<const Dataset> all, const std::vector<bool>& held_out) {
  std::vector<int64_t> training, validation;
  for (size_t i = 0; i < held_out.size(); ++i)
    (held_out[i] ? validation : training).push_back(static_cast<int64_t>(i));
  if (validation.empty()) return {std::move(all), nullptr};
  return {std::make_shared<Subset>(all, std::move(training)),
          std::make_shared<Subset>(all, std::move(validation))};
}

}  // namespace mpi4dl
