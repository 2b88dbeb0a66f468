#include "data/synthetic.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/batch_source.hpp"
#include "data/sampler.hpp"

namespace mpi4dl {
namespace {

const SyntheticOptions kOptions{
    .size = 20, .classes = 4, .image = {.channels = 3, .space = {12, 16}}, .seed = 7};
const Box kWhole{{0, 1}, {0, 3}, {0, 12}, {0, 16}};
const Box kPart{{0, 1}, {1, 3}, {5, 9}, {2, 16}};

template <typename Data>
class Generated : public ::testing::Test {};
using Kinds = ::testing::Types<RandomImages, SyntheticImages>;
TYPED_TEST_SUITE(Generated, Kinds);

TYPED_TEST(Generated, PartsAreThoseOfTheWhole) {
  const TypeParam data(kOptions);
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    const at::Tensor whole = data.read(sample, kWhole);
    const at::Tensor part = data.read(sample, kPart);
    EXPECT_TRUE(at::equal(part, whole.slice(0, 1, 3).slice(1, 5, 9).slice(2, 2, 16)));
  }
}

TYPED_TEST(Generated, ImagesDifferAndClassesAreAllUsed) {
  const TypeParam data(kOptions);
  std::set<int64_t> labels;
  for (int64_t sample = 0; sample < data.size(); ++sample) labels.insert(data.label(sample));
  EXPECT_EQ(labels.size(), 4U);
  EXPECT_EQ(*labels.rbegin(), 3);
  EXPECT_FALSE(at::equal(data.read(0, kWhole), data.read(1, kWhole)));
}

TEST(ReadBox, PutsTheImagesOfAMicroBatchOneAfterTheOther) {
  const RandomImages data(kOptions);
  SampleBatch batch(data, {8, 9, 7, 5});
  const Box box{{1, 3}, {0, 3}, {0, 12}, {4, 8}};
  const at::Tensor pixels = read_box(batch, {1, 3, 2}, box, at::kDouble);
  EXPECT_TRUE(pixels.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(pixels[0], data.read(5, box)));
  EXPECT_TRUE(at::equal(pixels[1], data.read(7, box)));
  const at::Tensor labels = read_labels(batch, {1, 3, 2}, {1, 3});
  EXPECT_EQ(labels[1].item<int64_t>(), data.label(7));
}

TEST(Shuffled, IsAPermutationThatChangesWithTheEpoch) {
  std::vector<int64_t> first = shuffled(100, 1, 1);
  EXPECT_EQ(first, shuffled(100, 1, 1));
  EXPECT_NE(first, shuffled(100, 1, 2));
  EXPECT_NE(first, shuffled(100, 2, 1));
  std::sort(first.begin(), first.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(first[i], i);
}

}  // namespace
}  // namespace mpi4dl
