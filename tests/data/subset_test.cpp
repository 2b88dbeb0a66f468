#include "data/subset.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

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
