#include "data/subset.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.hpp"

namespace mpi4dl {

Subset::Subset(std::shared_ptr<const Dataset> all, std::vector<int64_t> samples)
    : all_(std::move(all)), samples_(std::move(samples)) {}

std::vector<bool> hold_out(std::span<const int64_t> labels, std::span<const uint64_t> keys,
                           double fraction) {
  std::map<int64_t, std::vector<size_t>> classes;
  for (size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(i);
  std::vector<bool> held(labels.size());
  for (auto& [label, samples] : classes) {
    std::stable_sort(samples.begin(), samples.end(),
                     [&](size_t a, size_t b) { return mix(keys[a]) < mix(keys[b]); });
    const auto count = std::llround(fraction * static_cast<double>(samples.size()));
    for (long long i = 0; i < count; ++i) held[samples[i]] = true;
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
