#include "base/median.hpp"

#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({1, 9, 5, 3}), 4);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace mpi4dl
