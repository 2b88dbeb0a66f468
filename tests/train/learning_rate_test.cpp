#include "train/learning_rate.hpp"

#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

TEST(LearningRate, StaysConstant) {
  const LearningRate rate{.base = 0.5};
  EXPECT_EQ(rate.at(0), 0.5);
  EXPECT_EQ(rate.at(1000), 0.5);
}

TEST(LearningRate, RisesLinearlyDuringWarmUp) {
  const LearningRate rate{.base = 1, .warmup = 4};
  EXPECT_EQ(rate.at(0), 0.25);
  EXPECT_EQ(rate.at(2), 0.75);
  EXPECT_EQ(rate.at(4), 1);
}

TEST(LearningRate, FallsInSteps) {
  const LearningRate rate{
      .base = 1, .kind = LearningRate::Kind::step, .warmup = 2, .every = 3, .factor = 0.5};
  EXPECT_EQ(rate.at(4), 1);
  EXPECT_EQ(rate.at(5), 0.5);
  EXPECT_EQ(rate.at(8), 0.25);
}

TEST(LearningRate, FallsLikeHalfACosine) {
  const LearningRate rate{
      .base = 2, .kind = LearningRate::Kind::cosine, .warmup = 10, .total = 110};
  EXPECT_EQ(rate.at(10), 2);
  EXPECT_NEAR(rate.at(60), 1, 1e-15);
  EXPECT_NEAR(rate.at(110), 0, 1e-15);
  EXPECT_NEAR(rate.at(500), 0, 1e-15);
}

}  // namespace
}  // namespace mpi4dl
