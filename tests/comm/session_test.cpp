#include "comm/session.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "comm/collectives.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

TEST(Session, EveryRankHasItsOwnNumberInTheWorld) {
  const std::vector<int> ranks = all_gather(world().rank(), world());
  ASSERT_EQ(static_cast<int>(ranks.size()), world().size());
  for (int rank = 0; rank < world().size(); ++rank) {
    EXPECT_EQ(ranks[rank], rank);
    EXPECT_EQ(world().world_rank(rank), rank);
  }
  EXPECT_EQ(world().context().world_rank, world().rank());
}

TEST(Session, ExactlyOneRankIsTheFirst) {
  int firsts = 0;
  for (const int first : all_gather(session().first() ? 1 : 0, world())) firsts += first;
  EXPECT_EQ(firsts, 1);
}

TEST(Session, ComputesWithTheThreadsItWasGiven) {
  EXPECT_GE(session().threads(), 1);
  EXPECT_EQ(session().threads(), at::get_num_threads());
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  EXPECT_TRUE(wanted == nullptr || session().threads() == std::stoi(wanted));
}

TEST(Session, RemembersWhatItIsDoing) {
  session().doing("counting tiles");
  EXPECT_EQ(world().context().doing, "counting tiles");
}

TEST(Session, CommunicatorsShareItsContext) {
  const Communicator part = *world().split(world().rank() % 2);
  EXPECT_EQ(&part.context(), &world().context());
}

}  // namespace
}  // namespace mpi4dl::testing
