#include "comm/collectives.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "comm/carried_tensors.hpp"
#include "comm/node/shared_memory.hpp"
#include "support/scoped.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

int rank() {
  return world().rank();
}
int size() {
  return world().size();
}

/// A group ends with its last reduction, while slower ranks of it still read; what comes next takes
/// memory too.
TEST(Groups, ReduceAmongThemselvesAndEnd) {
  const auto& memory = world().context().shared_memory;
  for (int round = 0; round < 100; ++round) {
    at::Tensor ones = at::ones({3}, at::kLong);
    int members = 0;
    {
      const Communicator part = *world().split(rank() % 2);
      members = part.size();
      all_reduce(ones, part);
    }
    if (memory)
      memory->empty(std::array<int64_t, 1>{70000}, at::kByte, at::MemoryFormat::Contiguous).zero_();
    ASSERT_TRUE(ones.eq(members).all().item<bool>());
  }
}

/// Returns count, mean and sum of squared deviations of each row.
at::Tensor moments_of(const at::Tensor& rows) {
  const at::Tensor mean = rows.size(1) == 0 ? at::zeros({rows.size(0)}, at::kDouble) : rows.mean(1);
  const at::Tensor count = at::full({rows.size(0)}, rows.size(1), at::kDouble);
  return at::stack({count, mean, (rows - mean.unsqueeze(1)).square().sum(1)}, 1);
}

TEST(AllReduceMoments, MergesMomentsIntoThoseOfAllSamples) {
  at::manual_seed(3);
  const at::Tensor samples = at::randn({5, int64_t{10} * size()}, at::kDouble) + 1e3;
  // Rank 0 has none, the last rank has what the others leave over.
  const int64_t begin = int64_t{7} * std::max(rank() - 1, 0);
  const int64_t end = rank() == size() - 1 ? samples.size(1) : int64_t{7} * rank();
  at::Tensor moments = moments_of(samples.slice(1, begin, end));
  all_reduce_moments(moments, world());
  EXPECT_TRUE(at::allclose(moments, moments_of(samples), 1e-9, 0)) << moments;
}

// Ranks that cannot read each other's memory ------------------------------------------------------

class Apart : public ::testing::Test {
 protected:
  static void expect_the_same_everywhere(const at::Tensor& values) {
    const std::span mine(static_cast<const std::byte*>(values.data_ptr()), values.nbytes());
    const std::vector<std::byte> all = all_gather_bytes(mine, world());
    for (auto theirs = all.begin(); theirs != all.end(); theirs += std::ssize(mine))
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), theirs));
  }

  Scoped<std::shared_ptr<SharedMemory>> memory_{world().context().shared_memory, nullptr};
  Communicator apart_ = *world().split(0);
};

TEST_F(Apart, ReduceSmallMessagesAndLargeToTheSameResultOnAllRanks) {
  for (const int64_t count : {1, 129, 4000, 20000}) {
    at::manual_seed(5);
    const at::Tensor all = at::randn({size(), count}, at::kDouble);
    at::Tensor sum = all[rank()].clone(), most = all[rank()].clone();
    all_reduce(sum, apart_);
    all_reduce(most, apart_, {.reduction = Reduction::max});
    EXPECT_TRUE(at::allclose(sum, all.sum(0), 1e-12, 1e-12)) << count;
    EXPECT_TRUE(most.equal(all.amax(0))) << count;
    expect_the_same_everywhere(sum);
  }
}

TEST_F(Apart, MergeMomentsOnAllRanksAlike) {
  at::manual_seed(3);
  const at::Tensor samples = at::randn({5, int64_t{10} * size()}, at::kDouble) + 1e3;
  at::Tensor moments = moments_of(samples.narrow(1, int64_t{10} * rank(), 10));
  all_reduce_moments(moments, apart_);
  EXPECT_TRUE(at::allclose(moments, moments_of(samples), 1e-9, 0)) << moments;
  expect_the_same_everywhere(moments);
}

TEST_F(Apart, OneReductionIsNotTakenForTheNext) {
  for (int64_t round = 0; round < 50; ++round) {
    at::Tensor values = at::full({round % 3 + 1}, round * size() + rank(), at::kLong);
    all_reduce(values, apart_);
    const int64_t expected = round * size() * size() + size() * (size() - 1) / 2;
    ASSERT_TRUE(values.eq(expected).all().item<bool>()) << round;
  }
}

TEST(AllGather, ReturnsValuesInRankOrder) {
  struct Report {
    int rank;
    double square;
  };
  const auto reports = all_gather(Report{rank(), 1.0 * rank() * rank()}, world());
  for (int i = 0; i < size(); ++i) {
    EXPECT_EQ(reports[i].rank, i);
    EXPECT_EQ(reports[i].square, 1.0 * i * i);
  }
}

/// Knows what all ranks together make of their tensors.
class Collectives : public Tensors {
 protected:
  at::Tensor combined(Reduction reduction) const {
    at::Tensor result = values_of(0).to(at::kDouble);
    for (int other = 1; other < world().size(); ++other) {
      const at::Tensor theirs = values_of(other).to(at::kDouble);
      if (reduction == Reduction::sum) result = result + theirs;
      if (reduction == Reduction::min) result = at::minimum(result, theirs);
      if (reduction == Reduction::max) result = at::maximum(result, theirs);
    }
    return result.to(type());
  }
};

INSTANTIATE_TEST_SUITE_P(Carried, Collectives,
                         ::testing::Combine(::testing::ValuesIn(kCarriages),
                                            ::testing::ValuesIn(kTypes)),
                         name_of);

TEST_P(Collectives, AllReduceCombinesEveryRank) {
  for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max}) {
    at::Tensor tensor = values_of(rank());
    all_reduce(tensor, world(), {.reduction = reduction});
    EXPECT_TRUE(tensor.equal(combined(reduction))) << static_cast<int>(reduction);
  }
}

TEST_P(Collectives, AllReduceTakesManyElementsWhereverTheyLie) {
  const std::array<int64_t, 3> shape{7, 4099, 3};
  const auto many = [&](int of_rank) {
    return at::arange(7 * 4099 * 3, at::kLong).remainder(5 + of_rank).view(shape).to(type());
  };
  for (const bool shared : {false, true}) {
    const auto& memory = world().context().shared_memory;
    at::Tensor tensor = shared && memory
                            ? memory->empty(shape, type(), at::MemoryFormat::Contiguous)
                            : at::empty(shape, type());
    tensor = tensor.permute({2, 0, 1});
    tensor.copy_(many(rank()).permute({2, 0, 1}));
    at::Tensor largest = tensor.clone();
    all_reduce(tensor, world());
    all_reduce(largest, world(), {.reduction = Reduction::max});
    at::Tensor sum = many(0), most = many(0);
    for (int other = 1; other < size(); ++other) {
      sum = sum + many(other);
      most = at::maximum(most, many(other));
    }
    EXPECT_TRUE(tensor.equal(sum.permute({2, 0, 1}))) << shared;
    EXPECT_TRUE(largest.equal(most.permute({2, 0, 1}))) << shared;
  }
}

TEST_P(Collectives, AllReduceMayBeStartedAndFinishedLater) {
  at::Tensor tensor = values_of(rank());
  Pending pending = start_all_reduce(tensor, world());
  pending.finish();
  EXPECT_TRUE(tensor.equal(combined(Reduction::sum)));
}

TEST_P(Collectives, AllReduceTouchesOnlyTheViewItWasGiven) {
  at::Tensor whole = at::full({26, 7, 22}, 3, type());
  at::Tensor view = whole.slice(0, 1, 26, 2).slice(2, 0, 22, 2);
  view.copy_(values_of(rank()));
  all_reduce(view, world());
  EXPECT_TRUE(view.equal(combined(Reduction::sum)));
  view.fill_(3);
  EXPECT_TRUE(whole.eq(3).all().item<bool>());
}

TEST_P(Collectives, AllReduceFollowsTheElementsOfATransposedTensor) {
  at::Tensor transposed = values_of(rank()).permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  ASSERT_FALSE(transposed.is_contiguous());
  all_reduce(transposed, world());
  EXPECT_TRUE(transposed.equal(combined(Reduction::sum)));
}

TEST_P(Collectives, BroadcastCopiesTheRoot) {
  for (int root = 0; root < size(); ++root) {
    at::Tensor tensor = values_of(rank());
    broadcast(tensor, world(), root);
    EXPECT_TRUE(tensor.equal(values_of(root))) << "root " << root;
  }
}

TEST_P(Collectives, BroadcastFillsAViewAndNothingElse) {
  at::Tensor whole = at::zeros({13, 14, 11}, type());
  at::Tensor view = whole.slice(1, 0, 14, 2);
  view.copy_(values_of(rank()));
  broadcast(view, world(), size() - 1);
  EXPECT_TRUE(view.equal(values_of(size() - 1)));
  EXPECT_TRUE(whole.slice(1, 1, 14, 2).eq(0).all().item<bool>());
}

TEST_P(Collectives, MayBeEmpty) {
  at::Tensor nothing = at::empty({0, 4}, at::TensorOptions(type()));
  all_reduce(nothing, world());
  broadcast(nothing, world(), 0);
  EXPECT_EQ(nothing.numel(), 0);
}

// What cannot be reduced says so
// -------------------------------------------------------------------

TEST(AllReduce, RefusesToStartWithTensorsWithHoles) {
  const at::Tensor holes = at::zeros({4, 4}).slice(1, 0, 4, 2);
  EXPECT_THROW(start_all_reduce(holes, world()), Error);
}

TEST(AllReduce, NamesTheTypeItCannotReduce) {
  if (size() == 1) GTEST_SKIP() << "one rank has nothing to reduce";
  at::Tensor bytes = at::zeros({4}, at::kByte);
  try {
    all_reduce(bytes, world());
    FAIL() << "a tensor of bytes was reduced";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Byte"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace mpi4dl::testing
