#include "task/loss.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

struct Batch {
  at::Tensor logits, labels;
};

Batch six_images() {
  at::manual_seed(1);
  return {at::randn({6, 5}, at::kDouble), at::randint(5, {6}, at::kLong)};
}

TEST(CrossEntropy, IsThatOfLibtorch) {
  const auto [logits, labels] = six_images();
  EXPECT_NEAR(cross_entropy(logits, labels, 6).sum.item<double>(),
              at::cross_entropy_loss(logits, labels).item<double>(), 1e-14);
}

TEST(CrossEntropy, HasTheGradientOfItsSum) {
  const auto [logits, labels] = six_images();
  const at::Tensor gradient = cross_entropy(logits, labels, 6).gradient;
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < logits.numel(); ++i) {
    const at::Tensor nudge = at::zeros_like(logits);
    nudge.view(-1)[i] = kStep;
    const double slope = (cross_entropy(logits + nudge, labels, 6).sum.item<double>() -
                          cross_entropy(logits - nudge, labels, 6).sum.item<double>()) /
                         (2 * kStep);
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), slope, 1e-10);
  }
}

TEST(CrossEntropy, OfPartsAddsUpToThatOfTheBatch) {
  const auto [logits, labels] = six_images();
  const Loss whole = cross_entropy(logits, labels, 6);
  const Loss first = cross_entropy(logits.narrow(0, 0, 2), labels.narrow(0, 0, 2), 6);
  const Loss rest = cross_entropy(logits.narrow(0, 2, 4), labels.narrow(0, 2, 4), 6);
  EXPECT_NEAR(first.sum.item<double>() + rest.sum.item<double>(), whole.sum.item<double>(), 1e-14);
  EXPECT_TRUE(at::allclose(at::cat({first.gradient, rest.gradient}), whole.gradient, 1e-14));
}

TEST(CrossEntropy, OfNoImageIsNothing) {
  const Loss loss = cross_entropy(at::empty({0, 5}), at::empty({0}, at::kLong), 6);
  EXPECT_EQ(loss.sum.item<double>(), 0);
  EXPECT_EQ(loss.gradient.numel(), 0);
}

TEST(CrossEntropy, OfLargeLogitsStaysFinite) {
  const at::Tensor logits = at::tensor({1000.0, 0.0, -1000.0}).view({1, 3});
  EXPECT_EQ(cross_entropy(logits, at::zeros({1}, at::kLong), 1).sum.item<double>(), 0);
  EXPECT_EQ(cross_entropy(logits, at::full({1}, 2, at::kLong), 1).sum.item<double>(), 2000);
}

TEST(CrossEntropy, OfHalfTypesIsSummedInFloat) {
  const auto [logits, labels] = six_images();
  const Loss half = cross_entropy(logits.to(at::kBFloat16), labels, 6);
  const Loss exact = cross_entropy(logits.to(at::kBFloat16).to(at::kDouble), labels, 6);
  EXPECT_EQ(half.gradient.scalar_type(), at::kBFloat16);
  EXPECT_NEAR(half.sum.item<double>(), exact.sum.item<double>(), 1e-6);
}

TEST(HalfMeanSquare, OfPartsAddsUpToThatOfTheBatchAndHasItsGradient) {
  const at::Tensor output = at::randn({2, 3, 4, 5}, at::kDouble);
  const double mean = output.square().mean().item<double>() / 2;
  double sum = 0;
  for (const at::Tensor& part : output.split(3, /*dim=*/2)) {
    const Loss loss = half_mean_square(part, 2, 3 * 4 * 5);
    sum += loss.sum.item<double>();
    EXPECT_TRUE(at::allclose(loss.gradient, part / output.numel(), 1e-14, 1e-14));
  }
  EXPECT_NEAR(sum, mean, 1e-14);
  EXPECT_EQ(half_mean_square(at::empty({0, 0, 0, 0}, at::kDouble), 2, 60).sum.item<double>(), 0);
}

}  // namespace
}  // namespace mpi4dl
