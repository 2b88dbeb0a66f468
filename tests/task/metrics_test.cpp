#include "task/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/dice.hpp"

namespace mpi4dl {
namespace {

using testing::Dice;
using testing::seeds;

/// Computes it by its definition: every pair is looked at.
std::optional<double> share_of_pairs_won(const std::vector<double>& scores,
                                         const std::vector<bool>& of_class) {
  double won = 0, pairs = 0;
  for (size_t a = 0; a < scores.size(); ++a)
    for (size_t b = 0; b < scores.size(); ++b) {
      if (!of_class[a] || of_class[b]) continue;
      pairs += 1;
      won += scores[a] > scores[b] ? 1 : scores[a] == scores[b] ? 0.5 : 0;
    }
  if (pairs == 0) return std::nullopt;
  return won / pairs;
}

TEST(AreaUnderCurve, IsTheShareOfPairsWon) {
  for (const uint64_t seed : seeds(300)) {
    Dice dice(seed);
    const int64_t count = dice.pick(0, 60), values = dice.pick(1, 80);  // few values: many ties
    const double share = dice.one_of({0.0, 0.1, 0.5, 1.0});
    std::vector<double> scores;
    std::vector<bool> of_class;
    for (int64_t i = 0; i < count; ++i) {
      scores.push_back(static_cast<double>(dice.pick(1, values)) / static_cast<double>(values));
      of_class.push_back(dice.chance(share));
    }
    EXPECT_EQ(area_under_curve(scores, of_class), share_of_pairs_won(scores, of_class)) << seed;
  }
}

TEST(AreaUnderCurve, OfPerfectWorstAndEqualScores) {
  const std::vector<bool> of_class{false, false, true, true};
  EXPECT_EQ(area_under_curve(std::vector{0.1, 0.2, 0.3, 0.4}, of_class), 1.0);
  EXPECT_EQ(area_under_curve(std::vector{0.4, 0.3, 0.2, 0.1}, of_class), 0.0);
  EXPECT_EQ(area_under_curve(std::vector{0.1, 0.1, 0.1, 0.1}, of_class), 0.5);
  EXPECT_EQ(area_under_curve(std::vector{0.1, 0.2}, {true, true}), std::nullopt);
}

TEST(Probabilities, AreTheSoftmaxWithoutOverflow) {
  const auto shares = probabilities(std::vector{0.0, std::log(3.0), 1000.0, 1000.0 + std::log(3.0)},
                                    /*classes=*/2);
  const std::vector<double> expected{0.25, 0.75, 0.25, 0.75};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(shares[i], expected[i], 1e-12);
}

TEST(Metrics, OfAFewImages) {
  // Probabilities 3/4 and 1/4; the third image has no label.
  const double three = std::log(3.0);
  const std::vector<double> logits{three, 0, 0, three, 5, 0, 0, three};
  const Metrics metrics = measure(logits, std::vector<int64_t>{0, 0, -1, 1}, /*classes=*/2);
  EXPECT_EQ(metrics.images, 3);
  EXPECT_NEAR(metrics.loss, -(2 * std::log(0.75) + std::log(0.25)) / 3, 1e-12);
  EXPECT_NEAR(metrics.accuracy, 2.0 / 3, 1e-12);
  EXPECT_EQ(metrics.confusion, (std::vector<std::vector<int64_t>>{{1, 1}, {0, 1}}));
  ASSERT_EQ(metrics.auc.size(), 2U);
  EXPECT_EQ(metrics.auc[0], 0.75);  // one win and one tie in two pairs
  EXPECT_EQ(metrics.auc[1], 0.75);
  EXPECT_EQ(metrics.mean_auc(), 0.75);
}

TEST(Metrics, AClassWithoutImagesHasNoArea) {
  const Metrics metrics =
      measure(std::vector{1.0, 0.0, 0.0, 0.0, 1.0, 0.0}, std::vector<int64_t>{0, 1}, 3);
  EXPECT_EQ(metrics.auc[2], std::nullopt);
  EXPECT_EQ(metrics.mean_auc(), 1.0);
}

TEST(Metrics, OfNothing) {
  const Metrics metrics = measure({}, {}, 3);
  EXPECT_EQ(metrics.images, 0);
  EXPECT_EQ(metrics.mean_auc(), std::nullopt);
}

}  // namespace
}  // namespace mpi4dl
