#include "train/sharded_update.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/collectives.hpp"
#include "support/scoped.hpp"
#include "support/world.hpp"
#include "train/gradient_reduction.hpp"
#include "train/optimizer.hpp"

namespace mpi4dl {
namespace {

using testing::Scoped;
using testing::world;

/// Makes enough parameters for shards, and not a multiple of anything.
Graph wide_cell() {
  Graph graph({.channels = 2, .space = {5, 5}});
  graph.begin_cell("only");
  Value x = graph.add("flatten", Flatten{}, {graph.input()});
  x = graph.add("linear", Linear{.out_features = 503}, {x});
  graph.set_output(x);
  return graph;
}

void expect_same(const TensorMap& some, const TensorMap& others) {
  ASSERT_EQ(some.size(), others.size());
  for (const auto& [name, values] : some) EXPECT_TRUE(values.equal(others.at(name))) << name;
}

/// Each rank updates its shard, and has the others' afterwards: to the bit what it would have made
/// of all sums itself.
TEST(ShardedUpdate, RanksOfANodeShareTheUpdate) {
  const Graph graph = wide_cell();
  const auto& memory = world().context().shared_memory;
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const auto kind : {OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adamw}) {
      const auto& backend = world().context().backend;
      Parameters shared(graph, {1, 2}, type, 1, backend, memory),
          alone(graph, {1, 2}, type, 1, backend);
      // Groups whose borders are not those of shards.
      const OptimizerOptions options{.kind = kind,
                                     .weight_decay = 0.1,
                                     .rate_factors = {{"only.linear.bias", 3}},
                                     .weight_decays = {{"only.linear.bias", 0}}};
      Optimizer shards(shared, options), whole(alone, options);
      const ShardedUpdate update(shared, world()), all(alone, world());
      EXPECT_EQ(update.shard().length() < shared.gradient_memory().numel(), world().size() > 1);
      EXPECT_EQ(all.shard().length(), alone.gradient_memory().numel());
      for (int step = 0; step < 3; ++step) {
        alone.gradient_memory().zero_();
        for (int rank = 0; rank < world().size(); ++rank) {
          at::manual_seed(100 * step + rank);
          const at::Tensor drawn = at::randn(alone.gradient_memory().sizes());
          alone.gradient_memory().add_(drawn);
          if (rank == world().rank()) shared.gradient_memory().copy_(drawn);
        }
        GradientReduction(shared, update, {}).finish();
        shards.step(0.1, 1, update);
        whole.step(0.1, 1, all);
      }
      expect_same(shared.trained(), alone.trained());
      shards.gather(update);
      expect_same(shards.state(), whole.state());
    }
}

/// The shards of all ranks are all parameters, each once.
TEST(ShardedUpdate, ShardsOfANodeAreAPartition) {
  if (!world().context().shared_memory) GTEST_SKIP() << "these ranks do not share memory";
  const Graph graph = wide_cell();
  const Parameters parameters(graph, {1, 2}, at::kFloat, 1, world().context().backend,
                              world().context().shared_memory);
  const ShardedUpdate update(parameters, world());
  EXPECT_EQ(update.copies(), 1);
  int64_t end = 0;
  for (const Interval& theirs : all_gather(update.shard(), world())) {
    EXPECT_EQ(theirs.begin, end);
    end = theirs.end;
  }
  EXPECT_EQ(end, parameters.gradient_memory().numel());
}

TEST(ShardedUpdate, RanksOfSeveralNodesUpdateEverything) {
  const Scoped<std::shared_ptr<SharedMemory>> apart(world().context().shared_memory, nullptr);
  const Graph graph = wide_cell();
  const Parameters parameters(graph, {1, 2}, at::kFloat, 1, world().context().backend);
  const ShardedUpdate update(parameters, *world().split(0));
  EXPECT_EQ(update.shard(), (Interval{0, parameters.gradient_memory().numel()}));
  EXPECT_EQ(update.copies(), world().size());
}

}  // namespace
}  // namespace mpi4dl
