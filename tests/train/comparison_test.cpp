#include "train/comparison.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mpi4dl {
namespace {

/// Gradients of norms 3 and 4 (together 5), statistics of norm 2.
StepResult result() {
  StepResult step;
  step.logits = at::full({4}, 1.0, at::kDouble);
  step.gradients = {{"a.weight", at::full({1}, 3.0, at::kDouble)},
                    {"b.weight", at::full({4}, 2.0, at::kDouble)}};
  step.statistics = {{"bn.running_mean", at::full({4}, 1.0, at::kDouble)}};
  return step;
}

TEST(Comparison, OfEqualResultsFindsNothing) {
  const Comparison comparison = compare(result(), result());
  EXPECT_EQ(comparison.max_relative_error, 0);
  EXPECT_EQ(comparison.worst, "nothing");
}

TEST(Comparison, NamesTheLargestErrorRelativeToItsTensor) {
  StepResult other = result();
  other.logits[0] += 0.02;                        // of 2
  other.gradients["a.weight"] += 0.3;             // of 3
  other.gradients["b.weight"][1] += 0.2;          // of 4
  other.statistics["bn.running_mean"][3] -= 0.1;  // of 2
  const Comparison comparison = compare(other, result());
  EXPECT_NEAR(comparison.max_relative_error, 0.1, 1e-15);
  EXPECT_EQ(comparison.worst, "gradient of a.weight");
}

TEST(Comparison, LooksAtEveryKindOfResult) {
  StepResult output = result(), gradient = result(), statistics = result();
  output.logits[0] += 1;
  gradient.gradients["b.weight"][0] += 1;
  statistics.statistics["bn.running_mean"][0] += 1;
  EXPECT_EQ(compare(output, result()).worst, "output");
  EXPECT_EQ(compare(gradient, result()).worst, "gradient of b.weight");
  EXPECT_EQ(compare(statistics, result()).worst, "statistics of bn.running_mean");
}

TEST(Comparison, HoldsAVanishingGradientToTheSizeOfAll) {
  StepResult expected = result();
  expected.gradients["zero.bias"] = at::zeros({3}, at::kDouble);
  StepResult other = expected;
  other.gradients["zero.bias"] = at::tensor({0.0, 5e-16, 0.0}, at::kDouble);
  EXPECT_LE(compare(other, expected).max_relative_error, 1e-10 * (1 + 1e-12));
  other.gradients["zero.bias"] = at::tensor({0.0, 5e-3, 0.0}, at::kDouble);
  EXPECT_GT(compare(other, expected).max_relative_error, 1e-9);
}

TEST(Comparison, NeverOverlooksWhatIsNotANumber) {
  StepResult other = result();
  other.gradients["a.weight"][0] = std::nan("");
  other.gradients["b.weight"][0] = 1e300;
  const Comparison comparison = compare(other, result());
  EXPECT_TRUE(std::isnan(comparison.max_relative_error));
  EXPECT_EQ(comparison.worst, "gradient of a.weight");

  StepResult infinite = result();
  infinite.logits[0] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(compare(infinite, infinite).max_relative_error <= 1);
}

}  // namespace
}  // namespace mpi4dl
