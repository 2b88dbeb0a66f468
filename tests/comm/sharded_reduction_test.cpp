#include "comm/sharded_reduction.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "comm/collectives.hpp"
#include "support/world.hpp"

namespace mpi4dl {
namespace {

using testing::world;
using Wire = ShardedReduction::Wire;

constexpr double kHalfUlp = 0x1p-11;  // of float16, relative

/// Returns what each rank adds, the same on all ranks.
at::Tensor drawn(int64_t count, double scale = 1) {
  at::manual_seed(7);
  return at::randn({world().size(), count}, at::kDouble).mul(scale).to(at::kFloat);
}

at::Tensor reduced(const at::Tensor& all) {
  at::Tensor values = all[world().rank()].clone();
  ShardedReduction(values, world(), Wire::half).finish();
  return values;
}

/// Each value was rounded once before the sum and once behind it, relative to the values around it.
void expect_sum(const at::Tensor& got, const at::Tensor& all) {
  const at::Tensor expected = all.to(at::kDouble).sum(0);
  const at::Tensor allowed = (all.to(at::kDouble).abs().sum(0) + expected.abs()) * kHalfUlp;
  EXPECT_TRUE((got - expected).abs().le(allowed).all().item<bool>());
}

void expect_the_same_everywhere(const at::Tensor& values) {
  const std::span mine(static_cast<const std::byte*>(values.data_ptr()), values.nbytes());
  const std::vector<std::byte> all = all_gather_bytes(mine, world());
  for (auto theirs = all.begin(); theirs != all.end(); theirs += std::ssize(mine))
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), theirs));
}

TEST(ShardedReduction, KeepsAllDigitsWhereValuesTravelAsTheyAre) {
  for (const int64_t count : {0, 1, 7, 100003})
    for (const auto type : {at::kFloat, at::kDouble}) {
      const at::Tensor all = drawn(count).to(type);
      at::Tensor expected = at::zeros({count}, type);
      for (int rank = 0; rank < world().size(); ++rank) expected.add_(all[rank]);
      at::Tensor values = all[world().rank()].clone();
      ShardedReduction(values, world(), Wire::as_it_is).finish();
      EXPECT_TRUE(values.equal(expected)) << count;
    }
}

TEST(ShardedReduction, SumsHalvesToTheSameOnAllRanks) {
  for (const int64_t count : {1, 2, 7, 4097, 100003}) {
    const at::Tensor all = drawn(count), sum = reduced(all);
    expect_sum(sum, all);
    expect_the_same_everywhere(sum);
  }
}

TEST(ShardedReduction, HasNothingToDoForNothing) {
  at::Tensor none = at::empty({0}, at::kFloat);
  ShardedReduction(none, world(), Wire::half).finish();
}

/// In float16, 2048 + 1 is 2048.
TEST(ShardedReduction, AddsInFloat32) {
  at::Tensor values = at::full({100}, world().rank() == 0 ? 2048 : 1, at::kFloat);
  ShardedReduction(values, world(), Wire::half).finish();
  const int ones = world().size() - 1;
  const int expected = 2048 + ones / 2 * 2 + (ones % 4 == 3 ? 2 : 0);  // of two to the even one
  EXPECT_TRUE(values.eq(expected).all().item<bool>()) << values[0] << " instead of " << expected;
}

/// float16 ends at 65504, and has no more than the first digits below 6e-5.
TEST(ShardedReduction, NeitherOverflowsNorLosesSmallValues) {
  for (const double scale : {1e-30, 1e-12, 1e9, 1e30}) {
    const at::Tensor all = drawn(1000, scale), sum = reduced(all);
    expect_sum(sum, all);
    expect_the_same_everywhere(sum);
  }
  const at::Tensor zero = reduced(at::zeros({world().size(), 10}));
  EXPECT_TRUE(zero.eq(0).all().item<bool>());
}

TEST(ShardedReduction, ShowsWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    at::Tensor all = drawn(50);
    all[world().size() - 1][49] = bad;
    const at::Tensor sum = reduced(all);
    EXPECT_FALSE(std::isfinite(sum[49].item<float>()));
    EXPECT_TRUE(sum.narrow(0, 0, 10).isfinite().all().item<bool>());
  }
}

/// Several reductions run at once, which ranks advance at different moments.
TEST(ShardedReduction, ManyAtOnceDoNotMixUp) {
  const at::Tensor all = drawn(5 * 321);
  at::Tensor values = all[world().rank()].clone();
  std::vector<ShardedReduction> reductions;
  for (int i = 0; i < 5; ++i) {
    reductions.emplace_back(values.narrow(0, 321 * i, 321), world(),
                            i % 2 == 0 ? Wire::half : Wire::as_it_is);
    if (world().rank() % 2 == 0)
      for (ShardedReduction& reduction : reductions)
        if (!reduction.advance()) break;
  }
  for (ShardedReduction& reduction : reductions) reduction.send_on();
  for (ShardedReduction& reduction : reductions) reduction.finish();
  expect_sum(values, all);
}

}  // namespace
}  // namespace mpi4dl
