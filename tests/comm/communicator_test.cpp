#include "comm/communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "comm/carried_tensors.hpp"
#include "comm/collectives.hpp"

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

TEST(Communicator, HandsOutEachTagOnceAndTheSameOnAllRanks) {
  const Communicator fresh = *world().split(0);
  const int first = fresh.reserve_tags(3);
  EXPECT_EQ(Communicator(fresh).reserve_tags(1), first + 3) << "copies share their tags";
  for (const int theirs : all_gather(fresh.reserve_tags(2), world())) EXPECT_EQ(theirs, first + 4);
}

// Messages ---------------------------------------------------------------------------------------

INSTANTIATE_TEST_SUITE_P(Carried, Tensors,
                         ::testing::Combine(::testing::ValuesIn(kCarriages),
                                            ::testing::ValuesIn(kTypes)),
                         name_of);

TEST_P(Tensors, GoRoundTheRing) {
  const int next = (rank() + 1) % size();
  const int previous = (rank() + size() - 1) % size();
  at::Tensor buffer = at::empty({13, 7, 11}, at::TensorOptions(type()));
  Pending arrival = world().receive(buffer, previous, /*tag=*/7);
  world().send(values_of(rank()), next, /*tag=*/7).finish();
  const at::Tensor received = std::move(arrival).wait();
  EXPECT_TRUE(received.equal(values_of(previous)));
  EXPECT_EQ(received.data_ptr(), buffer.data_ptr());
}

TEST_P(Tensors, KeepTheOrderOfMessagesWithOneTag) {
  const int next = (rank() + 1) % size();
  const int previous = (rank() + size() - 1) % size();
  std::vector<Pending> sent;
  for (int i = 0; i < 3; ++i) sent.push_back(world().send(values_of(i), next, /*tag=*/8));
  for (int i = 0; i < 3; ++i) {
    const at::Tensor buffer = at::empty({13, 7, 11}, at::TensorOptions(type()));
    EXPECT_TRUE(world().receive(buffer, previous, /*tag=*/8).wait().equal(values_of(i)));
  }
}

TEST_P(Tensors, MayTravelAsPlainBytes) {
  const at::Tensor buffer = at::empty({13, 7, 11}, at::TensorOptions(type()));
  const at::Tensor mine = values_of(rank());
  const auto bytes = [](const at::Tensor& tensor) {
    return std::span(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  };
  Pending sent = world().send(bytes(mine), nullptr, (rank() + 1) % size(), /*tag=*/10);
  const int previous = (rank() + size() - 1) % size();
  world().receive(bytes(buffer), nullptr, previous, /*tag=*/10).finish();
  EXPECT_TRUE(buffer.equal(values_of(previous)));
}

TEST_P(Tensors, MayBeEmpty) {
  at::Tensor nothing = at::empty({0, 4}, at::TensorOptions(type()));
  Pending sent = world().send(nothing, (rank() + 1) % size(), /*tag=*/9);
  world().receive(nothing, (rank() + size() - 1) % size(), /*tag=*/9).finish();
  EXPECT_EQ(nothing.numel(), 0);
}

// What cannot travel says so ----------------------------------------------------------------------

TEST(Communicator, RefusesToSendTensorsWithHoles) {
  const at::Tensor holes = at::zeros({4, 4}).slice(1, 0, 4, 2);
  EXPECT_THROW(world().send(holes, rank(), /*tag=*/1), Error);
  EXPECT_THROW(world().receive(holes, rank(), /*tag=*/1), Error);
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
    const at::Tensor buffer = at::zeros({elements}, at::kLong);
    EXPECT_TRUE(world().receive(buffer, 0, /*tag=*/1).wait().equal(expected));
  }
}

}  // namespace
}  // namespace mpi4dl::testing
