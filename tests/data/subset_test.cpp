#include "data/subset.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/random.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

TEST(HoldOut, TakesTheShareOfEachClass) {
  std::vector<int64_t> labels;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 300; ++i) {
    labels.push_back(i < 200 ? 0 : 1);
    keys.push_back(combine_keys(3, i));
  }
  const std::vector<bool> held = hold_out(labels, keys, 0.1);
  EXPECT_EQ(std::count(held.begin(), held.begin() + 200, true), 20);
  EXPECT_EQ(std::count(held.begin() + 200, held.end(), true), 10);
  // A sample more: hardly anybody changes sides.
  labels.push_back(0);
  keys.push_back(combine_keys(3, 1000));
  const std::vector<bool> later = hold_out(labels, keys, 0.1);
  int changed = 0;
  for (size_t i = 0; i < held.size(); ++i) changed += held[i] != later[i] ? 1 : 0;
  EXPECT_LE(changed, 1);
}

/// Returns what a fraction of each class was before samples could belong together.
std::vector<bool> hold_out_singles(const std::vector<int64_t>& labels,
                                   const std::vector<uint64_t>& keys, double fraction) {
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

TEST(HoldOut, SplitsOfSamplesAloneStayAsTheyWere) {
  for (uint64_t trial = 0; trial < 300; ++trial) {
    std::vector<int64_t> labels;
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < mix(trial) % 80; ++i) {
      labels.push_back(static_cast<int64_t>(combine_keys(trial, i) % 4) - 1);
      keys.push_back(combine_keys(trial + 1000, i));
    }
    const double fraction = static_cast<double>(trial % 21) / 20;  // halves among the targets
    EXPECT_EQ(hold_out(labels, keys, fraction), hold_out_singles(labels, keys, fraction)) << trial;
  }
}

TEST(HoldOut, KeepsSamplesOfAKeyTogether) {
  for (uint64_t trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> labels;
    std::vector<uint64_t> keys;
    std::map<uint64_t, std::set<bool>> parts;
    for (uint64_t patient = 0; patient < 60; ++patient)
      for (uint64_t i = 0; i <= combine_keys(trial, patient) % 5; ++i) {  // up to 5 images each
        labels.push_back(patient % 3 == 0 ? 1 : 0);
        keys.push_back(combine_keys(trial + 7, patient));
      }
    const std::vector<bool> held = hold_out(labels, keys, 0.25);
    std::array<double, 2> images{}, held_images{};
    for (size_t i = 0; i < keys.size(); ++i) {
      parts[keys[i]].insert(held[i]);
      ++images[labels[i]];
      if (held[i]) ++held_images[labels[i]];
    }
    for (const auto& [key, sides] : parts) EXPECT_EQ(sides.size(), 1U);
    for (int label : {0, 1}) EXPECT_NEAR(held_images[label], 0.25 * images[label], 2.5) << label;
  }
}

TEST(HoldOut, PatientsOfSeveralClassesStayWhole) {
  const std::vector<int64_t> labels{0, 1, 1, 0, 0, 1};
  const std::vector<uint64_t> keys{5, 5, 5, 8, 8, 8};
  const std::vector<bool> held = hold_out(labels, keys, 0.5);
  for (const size_t i : {1, 2}) EXPECT_EQ(held[i], held[0]);
  for (const size_t i : {4, 5}) EXPECT_EQ(held[i], held[3]);
}

TEST(Split, EverySampleIsInOnePart) {
  const auto all = std::make_shared<RandomImages>(
      SyntheticOptions{.size = 5, .classes = 4, .image = {.channels = 1, .space = {2, 3}}});
  const DataParts parts = split(all, {false, true, false, false, true});
  ASSERT_EQ(parts.training->size(), 3);
  ASSERT_EQ(parts.validation->size(), 2);
  EXPECT_EQ(parts.training->name(2), "random 3");
  EXPECT_EQ(parts.validation->name(1), "random 4");
  EXPECT_EQ(parts.validation->label(1), all->label(4));
  EXPECT_EQ(parts.validation->extent(1), (Extents{2, 3}));
  const Box box{{0, 1}, {0, 1}, {0, 2}, {1, 3}};
  EXPECT_TRUE(at::equal(parts.training->read(1, box), all->read(2, box)));
  EXPECT_EQ(split(all, std::vector<bool>(5)).validation, nullptr);
}

}  // namespace
}  // namespace mpi4dl
