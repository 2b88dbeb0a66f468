#include "verify/comparison.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns gradients of norms 3 and 4 (together 5), statistics of norm 2.
StepResult result() {
  StepResult step;
  step.loss = 2;
  step.logits = at::full({4}, 1.0, at::kDouble);
  step.gradients = {{"a.weight", at::full({1}, 3.0, at::kDouble)},
                    {"b.weight", at::full({4}, 2.0, at::kDouble)}};
  step.statistics = {{"bn.running_mean", at::full({4}, 1.0, at::kDouble)}};
  return step;
}

TEST(Comparison, OfEqualResultsFindsNothing) {
  const Comparison comparison = compare(result(), result());
  EXPECT_EQ(comparison.max_relative_error, 0);
  EXPECT_EQ(comparison.worst, "");
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
  StepResult loss = result(), output = result(), gradient = result(), statistics = result();
  loss.loss *= 2;
  output.logits[0] += 1;
  gradient.gradients["b.weight"][0] += 1;
  statistics.statistics["bn.running_mean"][0] += 1;
  EXPECT_EQ(compare(loss, result()).worst, "loss");
  EXPECT_EQ(compare(loss, result()).max_relative_error, 1);
  EXPECT_EQ(compare(output, result()).worst, "output");
  EXPECT_EQ(compare(gradient, result()).worst, "gradient of b.weight");
  EXPECT_EQ(compare(statistics, result()).worst, "statistics of bn.running_mean");
}

TEST(Comparison, HoldsAVanishingGradientToTheSizeOfAll) {
  StepResult expected = result();
  expected.gradients["zero.bias"] = at::tensor({1e-12, 0.0, 0.0}, at::kDouble);
  StepResult other = expected;
  other.gradients["zero.bias"] = at::tensor({0.0, 2e-12, 0.0}, at::kDouble);
  EXPECT_LE(compare(other, expected).max_relative_error, 1e-12);
  other.gradients["zero.bias"] = at::tensor({0.0, 5e-3, 0.0}, at::kDouble);
  EXPECT_NEAR(compare(other, expected).max_relative_error, 1e-3, 1e-9);
}

TEST(Comparison, HoldsAParameterThatNothingMovedToTheSizeOfAll) {
  StepResult expected = result();
  expected.parameters = {{"a.weight", at::full({1}, 3.0, at::kDouble)},
                         {"a.bias", at::full({1}, 1e-18, at::kDouble)}};
  StepResult other = expected;
  other.parameters["a.bias"] = at::full({1}, -1e-18, at::kDouble);
  EXPECT_LE(compare(other, expected).max_relative_error, 1e-17);
  other.parameters["a.weight"] = at::full({1}, 3.3, at::kDouble);
  EXPECT_NEAR(compare(other, expected).max_relative_error, 0.1, 1e-12);
  EXPECT_EQ(compare(other, expected).worst, "values of a.weight");
}

TEST(Comparison, HoldsASmallGradientToItsOwnSize) {
  StepResult expected = result();
  expected.gradients["small.bias"] = at::full({1}, 1e-4, at::kDouble);
  StepResult other = expected;
  other.gradients["small.bias"] = at::zeros({1}, at::kDouble);
  EXPECT_EQ(compare(other, expected).max_relative_error, 1);
  expected.gradients["small.bias"] = at::full({1}, 1e-7, at::kDouble);
  EXPECT_NEAR(compare(other, expected).max_relative_error, 1e-7 / 5e-6, 1e-9);
}

TEST(Comparison, HoldsAVanishingMeanToTheStandardDeviation) {
  StepResult expected = result();
  expected.statistics = {{"bn.running_mean", at::tensor({1e-17, 0.0}, at::kDouble)},
                         {"bn.running_var", at::full({2}, 4.0, at::kDouble)}};
  StepResult other = expected;
  other.statistics["bn.running_mean"] = at::tensor({0.0, 2e-17}, at::kDouble);
  EXPECT_LE(compare(other, expected).max_relative_error, 1e-16);
  other.statistics["bn.running_mean"][1] = 2e-3;  // of the norm of two deviations of 2
  EXPECT_NEAR(compare(other, expected).max_relative_error, 2e-3 / std::sqrt(8), 1e-12);
  expected.statistics["bn.running_mean"] = at::full({2}, 1e-6, at::kDouble);
  other.statistics["bn.running_mean"] = at::full({2}, 2e-6, at::kDouble);
  EXPECT_NEAR(compare(other, expected).max_relative_error, 1, 1e-9);
}

TEST(Comparison, RefusesResultsOfOtherParameters) {
  StepResult other = result();
  other.gradients.erase("a.weight");
  other.gradients["c.weight"] = at::zeros({1}, at::kDouble);
  EXPECT_THROW(compare(other, result()), Error);
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
