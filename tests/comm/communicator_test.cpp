#include "comm/communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "comm/shared_memory.hpp"
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

// Groups ----------------------------------------------------------------------------------------

TEST(Split, RanksOfOneColorFormAGroup) {
  const int color = rank() % 2;
  const std::optional<Communicator> part = world().split(color);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->size(), (size() + 1 - color) / 2);
  for (int i = 0; i < part->size(); ++i) EXPECT_EQ(part->world_rank(i), 2 * i + color);
  EXPECT_EQ(part->world_rank(part->rank()), rank());
}

TEST(Split, KeysOrderTheGroup) {
  const std::optional<Communicator> reversed = world().split(0, -rank());
  ASSERT_TRUE(reversed);
  EXPECT_EQ(reversed->rank(), size() - 1 - rank());
  EXPECT_EQ(reversed->world_rank(0), size() - 1);
}

TEST(Split, RanksWithoutColorHaveNoGroup) {
  EXPECT_EQ(world().split(rank() == 0 ? 0 : -1).has_value(), rank() == 0);
}

TEST(Subgroup, HasTheGivenRanksInTheGivenOrder) {
  const std::vector<int> some = size() == 1 ? std::vector{0} : std::vector{size() - 1, 0};
  const bool member = std::find(some.begin(), some.end(), rank()) != some.end();
  const std::optional<Communicator> group = world().subgroup(some);
  ASSERT_EQ(group.has_value(), member);
  if (!member) return;
  ASSERT_EQ(group->size(), static_cast<int>(some.size()));
  for (int i = 0; i < group->size(); ++i) EXPECT_EQ(group->world_rank(i), some[i]);
}

TEST(Subgroup, IsMadeByItsMembersAlone) {
  if (rank() != 0) return;  // the others do not take part
  const std::vector<int> alone{0};
  EXPECT_EQ(world().subgroup(alone)->size(), 1);
}

TEST(Groups, ReduceAmongThemselves) {
  const Communicator part = *world().split(rank() % 2);
  at::Tensor ones = at::ones({3}, at::kLong);
  part.all_reduce(ones);
  EXPECT_TRUE(ones.eq(part.size()).all().item<bool>());
}

TEST(Communicator, HandsOutEachTagOnceAndTheSameOnAllRanks) {
  const Communicator fresh = *world().split(0);
  const int first = fresh.reserve_tags(3);
  EXPECT_EQ(Communicator(fresh).reserve_tags(1), first + 3) << "copies share their tags";
  for (const int theirs : all_gather(world(), fresh.reserve_tags(2))) EXPECT_EQ(theirs, first + 4);
}

/// Count, mean and sum of squared deviations of each row.
at::Tensor moments_of(const at::Tensor& rows) {
  const at::Tensor mean = rows.size(1) == 0 ? at::zeros({rows.size(0)}, at::kDouble) : rows.mean(1);
  const at::Tensor count = at::full({rows.size(0)}, rows.size(1), at::kDouble);
  return at::stack({count, mean, (rows - mean.unsqueeze(1)).square().sum(1)}, 1);
}

TEST(Communicator, MergesMomentsIntoThoseOfAllSamples) {
  at::manual_seed(3);
  const at::Tensor samples = at::randn({5, int64_t{10} * size()}, at::kDouble) + 1e3;
  // Rank 0 has none, the last rank has what the others leave over.
  const int64_t begin = int64_t{7} * std::max(rank() - 1, 0);
  const int64_t end = rank() == size() - 1 ? samples.size(1) : int64_t{7} * rank();
  at::Tensor moments = moments_of(samples.slice(1, begin, end));
  world().all_reduce_moments(moments);
  EXPECT_TRUE(at::allclose(moments, moments_of(samples), 1e-9, 0)) << moments;
}

// Ranks that cannot read each other's memory ------------------------------------------------------

class Apart : public ::testing::Test {
 protected:
  static void expect_the_same_everywhere(const at::Tensor& numbers) {
    const std::span mine(static_cast<const std::byte*>(numbers.data_ptr()), numbers.nbytes());
    const std::vector<std::byte> all = world().all_gather(mine);
    for (auto theirs = all.begin(); theirs != all.end(); theirs += std::ssize(mine))
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), theirs));
  }

  Scoped<std::shared_ptr<SharedMemory>> memory_{world().context().shared_memory, nullptr};
  Communicator apart_ = *world().split(0);
};

TEST_F(Apart, ReduceFewNumbersAndManyToTheSameResultOnAllRanks) {
  for (const int64_t count : {1, 129, 4000, 20000}) {
    at::manual_seed(5);
    const at::Tensor all = at::randn({size(), count}, at::kDouble);
    at::Tensor sum = all[rank()].clone(), most = all[rank()].clone();
    apart_.all_reduce(sum);
    apart_.all_reduce(most, Reduction::max);
    EXPECT_TRUE(at::allclose(sum, all.sum(0), 1e-12, 1e-12)) << count;
    EXPECT_TRUE(most.equal(all.amax(0))) << count;
    expect_the_same_everywhere(sum);
  }
}

TEST_F(Apart, MergeMomentsOnAllRanksAlike) {
  at::manual_seed(3);
  const at::Tensor samples = at::randn({5, int64_t{10} * size()}, at::kDouble) + 1e3;
  at::Tensor moments = moments_of(samples.narrow(1, int64_t{10} * rank(), 10));
  apart_.all_reduce_moments(moments);
  EXPECT_TRUE(at::allclose(moments, moments_of(samples), 1e-9, 0)) << moments;
  expect_the_same_everywhere(moments);
}

TEST_F(Apart, OneReductionIsNotTakenForTheNext) {
  for (int64_t turn = 0; turn < 50; ++turn) {
    at::Tensor numbers = at::full({turn % 3 + 1}, turn * size() + rank(), at::kLong);
    apart_.all_reduce(numbers);
    const int64_t expected = turn * size() * size() + size() * (size() - 1) / 2;
    ASSERT_TRUE(numbers.eq(expected).all().item<bool>()) << turn;
  }
}

TEST(Communicator, GathersInRankOrder) {
  struct Report {
    int rank;
    double square;
  };
  const auto reports = all_gather(world(), Report{rank(), 1.0 * rank() * rank()});
  for (int i = 0; i < size(); ++i) {
    EXPECT_EQ(reports[i].rank, i);
    EXPECT_EQ(reports[i].square, 1.0 * i * i);
  }
}

// Tensors, carried in one piece, in many, and through host memory ---------------------------------

struct Carriage {
  const char* name;
  int64_t max_message_bytes;
  bool stage_through_host;
};
const Carriage kCarriages[] = {{"whole", int64_t{1} << 30, false},
                               {"pieces", 1001, false},  // not a multiple of any element's size
                               {"staged", int64_t{1} << 30, true},
                               {"staged_pieces", 1001, true}};
const c10::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong};

class Tensors : public ::testing::TestWithParam<std::tuple<Carriage, c10::ScalarType>> {
 protected:
  c10::ScalarType type() const { return std::get<c10::ScalarType>(GetParam()); }
  const Carriage& carriage() const { return std::get<Carriage>(GetParam()); }

  /// What `rank` contributes: small integers of both signs, so that sums over 9 ranks are exact in
  /// every type. Three dimensions and an odd length.
  at::Tensor values_of(int rank) const {
    const at::Tensor index = at::arange(13 * 7 * 11, at::kLong).view({13, 7, 11});
    return (index * (rank + 1) + 3 * rank).remainder(15).sub(7).to(type());
  }

  at::Tensor reduced(Reduction reduction) const {
    at::Tensor result = values_of(0).to(at::kDouble);
    for (int other = 1; other < size(); ++other) {
      const at::Tensor theirs = values_of(other).to(at::kDouble);
      if (reduction == Reduction::sum) result = result + theirs;
      if (reduction == Reduction::min) result = at::minimum(result, theirs);
      if (reduction == Reduction::max) result = at::maximum(result, theirs);
    }
    return result.to(type());
  }

 private:
  Scoped<int64_t> bytes_{world().context().max_message_bytes, carriage().max_message_bytes};
  Scoped<bool> staged_{world().context().stage_through_host, carriage().stage_through_host};
};

INSTANTIATE_TEST_SUITE_P(Carried, Tensors,
                         ::testing::Combine(::testing::ValuesIn(kCarriages),
                                            ::testing::ValuesIn(kTypes)),
                         [](const auto& info) {
                           return std::string(std::get<Carriage>(info.param).name) + "_" +
                                  c10::toString(std::get<c10::ScalarType>(info.param));
                         });

TEST_P(Tensors, AllReduceCombinesEveryRank) {
  for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max}) {
    at::Tensor tensor = values_of(rank());
    world().all_reduce(tensor, reduction);
    EXPECT_TRUE(tensor.equal(reduced(reduction))) << static_cast<int>(reduction);
  }
}

TEST_P(Tensors, AllReduceTakesManyNumbersWhereverTheyLie) {
  const std::array<int64_t, 3> shape{7, 4099, 3};
  const auto many = [&](int of_rank) {
    return at::arange(7 * 4099 * 3, at::kLong).remainder(5 + of_rank).view(shape).to(type());
  };
  for (const bool shared : {false, true}) {
    const auto& memory = shared ? world().context().shared_memory : nullptr;
    at::Tensor tensor =
        empty_for_exchange(memory, shape, type(), c10::MemoryFormat::Contiguous).permute({2, 0, 1});
    tensor.copy_(many(rank()).permute({2, 0, 1}));
    at::Tensor largest = tensor.clone();
    world().all_reduce(tensor);
    world().all_reduce(largest, Reduction::max);
    at::Tensor sum = many(0), most = many(0);
    for (int other = 1; other < size(); ++other) {
      sum = sum + many(other);
      most = at::maximum(most, many(other));
    }
    EXPECT_TRUE(tensor.equal(sum.permute({2, 0, 1}))) << shared;
    EXPECT_TRUE(largest.equal(most.permute({2, 0, 1}))) << shared;
  }
}

TEST_P(Tensors, AllReduceMayBeStartedAndFinishedLater) {
  at::Tensor tensor = values_of(rank());
  Pending pending = world().start_all_reduce(tensor);
  pending.finish();
  EXPECT_TRUE(tensor.equal(reduced(Reduction::sum)));
}

TEST_P(Tensors, AllReduceTouchesOnlyTheViewItWasGiven) {
  at::Tensor whole = at::full({26, 7, 22}, 3, type());
  at::Tensor view = whole.slice(0, 1, 26, 2).slice(2, 0, 22, 2);
  view.copy_(values_of(rank()));
  world().all_reduce(view);
  EXPECT_TRUE(view.equal(reduced(Reduction::sum)));
  view.fill_(3);
  EXPECT_TRUE(whole.eq(3).all().item<bool>());
}

TEST_P(Tensors, AllReduceFollowsTheElementsOfATransposedTensor) {
  at::Tensor transposed = values_of(rank()).permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  ASSERT_FALSE(transposed.is_contiguous());
  world().all_reduce(transposed);
  EXPECT_TRUE(transposed.equal(reduced(Reduction::sum)));
}

TEST_P(Tensors, BroadcastCopiesTheRoot) {
  for (int root = 0; root < size(); ++root) {
    at::Tensor tensor = values_of(rank());
    world().broadcast(tensor, root);
    EXPECT_TRUE(tensor.equal(values_of(root))) << "root " << root;
  }
}

TEST_P(Tensors, BroadcastFillsAViewAndNothingElse) {
  at::Tensor whole = at::zeros({13, 14, 11}, type());
  at::Tensor view = whole.slice(1, 0, 14, 2);
  view.copy_(values_of(rank()));
  world().broadcast(view, size() - 1);
  EXPECT_TRUE(view.equal(values_of(size() - 1)));
  EXPECT_TRUE(whole.slice(1, 1, 14, 2).eq(0).all().item<bool>());
}

TEST_P(Tensors, GoRoundTheRing) {
  const int next = (rank() + 1) % size();
  const int previous = (rank() + size() - 1) % size();
  at::Tensor room = at::empty({13, 7, 11}, at::TensorOptions(type()));
  Pending arrival = world().receive(room, previous, /*tag=*/7);
  world().send(values_of(rank()), next, /*tag=*/7).finish();
  const at::Tensor received = std::move(arrival).wait();
  EXPECT_TRUE(received.equal(values_of(previous)));
  EXPECT_EQ(received.data_ptr(), room.data_ptr());
}

TEST_P(Tensors, KeepTheOrderOfMessagesWithOneTag) {
  const int next = (rank() + 1) % size();
  const int previous = (rank() + size() - 1) % size();
  std::vector<Pending> sent;
  for (int i = 0; i < 3; ++i) sent.push_back(world().send(values_of(i), next, /*tag=*/8));
  for (int i = 0; i < 3; ++i) {
    const at::Tensor room = at::empty({13, 7, 11}, at::TensorOptions(type()));
    EXPECT_TRUE(world().receive(room, previous, /*tag=*/8).wait().equal(values_of(i)));
  }
}

TEST_P(Tensors, MayTravelAsPlainBytes) {
  const at::Tensor room = at::empty({13, 7, 11}, at::TensorOptions(type()));
  const at::Tensor mine = values_of(rank());
  const auto bytes = [](const at::Tensor& tensor) {
    return std::span(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  };
  Pending sent = world().send(bytes(mine), nullptr, (rank() + 1) % size(), /*tag=*/10);
  const int previous = (rank() + size() - 1) % size();
  world().receive(bytes(room), nullptr, previous, /*tag=*/10).finish();
  EXPECT_TRUE(room.equal(values_of(previous)));
}

TEST_P(Tensors, MayBeEmpty) {
  at::Tensor nothing = at::empty({0, 4}, at::TensorOptions(type()));
  world().all_reduce(nothing);
  world().broadcast(nothing, 0);
  Pending sent = world().send(nothing, (rank() + 1) % size(), /*tag=*/9);
  world().receive(nothing, (rank() + size() - 1) % size(), /*tag=*/9).finish();
  EXPECT_EQ(nothing.numel(), 0);
}

// What cannot travel says so ----------------------------------------------------------------------

TEST(Communicator, RefusesToSendTensorsWithHoles) {
  const at::Tensor holes = at::zeros({4, 4}).slice(1, 0, 4, 2);
  EXPECT_THROW(world().send(holes, rank(), /*tag=*/1), Error);
  EXPECT_THROW(world().receive(holes, rank(), /*tag=*/1), Error);
  EXPECT_THROW(world().start_all_reduce(holes), Error);
}

TEST(Communicator, NamesTheTypeItCannotReduce) {
  if (size() == 1) GTEST_SKIP() << "one rank has nothing to reduce";
  at::Tensor bytes = at::zeros({4}, at::kByte);
  try {
    world().all_reduce(bytes);
    FAIL() << "a tensor of bytes was reduced";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Byte"), std::string::npos) << error.what();
  }
}

TEST(Communicator, ReportsWhatMpiRejects) {
  try {
    world().send(at::zeros({4}), rank(), /*tag=*/-5).finish();
    FAIL() << "a message went out with a tag that does not exist";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("MPI_ERR_TAG"), std::string::npos) << error.what();
  }
}

/// Needs 4 GiB a rank, hence only on demand.
TEST(BigMessage, BeyondTwoGibibytesArrivesWhole) {
  if (std::getenv("MPI4DL_BIG_TESTS") == nullptr)
    GTEST_SKIP() << "set MPI4DL_BIG_TESTS=1 to run it";
  if (size() != 2) GTEST_SKIP() << "two ranks are enough";
  const int64_t elements = (int64_t{1} << 28) + 7;  // of 8 bytes
  const at::Tensor expected = at::arange(elements, at::kLong);
  if (rank() == 0) {
    world().send(expected, 1, /*tag=*/1).finish();
  } else {
    const at::Tensor room = at::zeros({elements}, at::kLong);
    EXPECT_TRUE(world().receive(room, 0, /*tag=*/1).wait().equal(expected));
  }
}

}  // namespace
}  // namespace mpi4dl::testing
