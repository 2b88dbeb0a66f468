#include "base/nearest_name.hpp"

#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

const std::vector<std::string> kFlags{"--batch-size", "--batch-norm", "--image-size", "--lr"};

TEST(NearestName, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("--batchsize", kFlags), "--batch-size");
  EXPECT_EQ(nearest_name("--batch-zise", kFlags), "--batch-size");
  EXPECT_EQ(nearest_name("--bacth-norm", kFlags), "--batch-norm");
  EXPECT_EQ(nearest_name("--IMAGE-SIZE", kFlags), "--image-size");
  EXPECT_EQ(nearest_name("trian", {"train", "plan"}), "train");
}

TEST(NearestName, FindsTheOnlyOneThatBeginsLikeIt) {
  EXPECT_EQ(nearest_name("--image", kFlags), "--image-size");
  EXPECT_EQ(nearest_name("--bat", kFlags), "");
  EXPECT_EQ(nearest_name("--", {"--batch-size"}), "");
}

TEST(NearestName, SuggestsNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("--frobnicate", kFlags), "");
  EXPECT_EQ(nearest_name("x", {"train", "plan"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
  EXPECT_EQ(suggestion("--frobnicate", kFlags), "");
}

TEST(NearestName, SaysIt) {
  EXPECT_EQ(suggestion("--batchsize", kFlags), " (did you mean --batch-size?)");
}

}  // namespace
}  // namespace mpi4dl
