#include "plan/stage_plan.hpp"

#include <map>

#include "base/error.hpp"
#include "geometry/routes.hpp"
#include "graph/operators.hpp"
#include "models/amoebanet.hpp"
#include "models/resnet.hpp"
#include "sample_plans.hpp"

namespace mpi4dl {
namespace {

using namespace testing;

/// Returns every value that the stage reads or makes.
std::vector<int> values_of(const StagePlan& plan) {
  std::vector<int> all = plan.inputs();
  all.insert(all.end(), plan.nodes().begin(), plan.nodes().end());
  return all;
}

int64_t elements(const std::vector<Box>& boxes) {
  int64_t sum = 0;
  for (const Box& box : boxes) sum += box.elements();
  return sum;
}

void expect_disjoint(const std::vector<Box>& boxes) {
  for (size_t a = 0; a < boxes.size(); ++a)
    for (size_t b = 0; b < a; ++b) ASSERT_TRUE(intersect(boxes[a], boxes[b]).empty());
}

TEST(StagePlan, EveryValueIsSharedOutWithoutGapOrOverlap) {
  for_all_plans([](const StagePlan& plan) {
    for (const int id : values_of(plan)) {
      SCOPED_TRACE(plan.graph().node(id).name);
      const Box whole = Box::whole(plan.full_shape(id));
      const std::vector<Box>& owned = plan.value(id).owned;
      for (const Box& box : owned) ASSERT_TRUE(whole.contains(box));
      ASSERT_EQ(elements(owned), whole.elements());
      expect_disjoint(owned);
    }
  });
}

TEST(StagePlan, ATileComputesWhatItOwnsAndStaysInsideTheImage) {
  for_all_plans([](const StagePlan& plan) {
    for (const int id : plan.nodes())
      for (int rank = 0; rank < plan.grid().size(); ++rank) {
        const Box& computed = plan.value(id).computed[rank];
        ASSERT_TRUE(computed.contains(plan.value(id).owned[rank])) << plan.graph().node(id).name;
        ASSERT_TRUE(Box::whole(plan.full_shape(id)).contains(computed));
      }
  });
}

/// Returns what a tile has of input number `input` when `node` runs.
const Box& held(const StagePlan& plan, int node, int input, int rank) {
  const int from = plan.graph().node(node).inputs[input];
  const ValuePlan& value = plan.value(from);
  return plan.reads_extended(from, node) ? value.extended[rank] : value.computed[rank];
}

template <typename Check>
void for_all_reads(const StagePlan& plan, Check&& check) {
  for (const int node : plan.nodes()) {
    SCOPED_TRACE(plan.graph().node(node).name);
    const int inputs = static_cast<int>(plan.graph().node(node).inputs.size());
    for (int input = 0; input < inputs; ++input)
      for (int rank = 0; rank < plan.grid().size(); ++rank) check(node, input, rank);
  }
}

TEST(StagePlan, ATileHasEverythingThatItReads) {
  for_all_plans([](const StagePlan& plan) {
    for_all_reads(plan, [&](int node, int input, int rank) {
      ASSERT_TRUE(held(plan, node, input, rank).contains(plan.needed(node, input, rank)));
    });
  });
}

/// Returns whether `box` has each row of the image that a tap of the window reads, by definition.
bool has_all_taps(const Window& window, const Interval& outputs, int64_t length,
                  const Interval& rows) {
  for (int64_t output = outputs.begin; output < outputs.end; ++output)
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      const int64_t row = output * window.stride - window.padding + tap * window.dilation;
      const bool inside = row >= 0 && row < length;
      if (inside && !rows.contains({row, row + 1})) return false;
    }
  return true;
}

TEST(StagePlan, NoTapOfAWindowReadsAPixelThatTheTileDoesNotHave) {
  for_all_plans([](const StagePlan& plan) {
    for_all_reads(plan, [&](int node, int input, int rank) {
      const Box& outputs = plan.value(node).computed[rank];
      const Box& inputs = held(plan, node, input, rank);
      const std::vector<Window> all = windows(plan.graph().node(node).op, outputs.axes() - 2);
      const Box whole = Box::whole(plan.full_shape(plan.graph().node(node).inputs[input]));
      for (size_t axis = 0; axis < all.size(); ++axis) {
        const int place = static_cast<int>(axis) + 2;
        ASSERT_TRUE(has_all_taps(all[axis], outputs[place], whole[place].length(), inputs[place]));
      }
    });
  });
}

/// Returns the messages of a rank for the exchange of a value.
Routes exchange_routes(const StagePlan& plan, int id, int rank) {
  return find_routes(one_box_each(plan.value(id).owned), one_box_each(plan.value(id).extended),
                     rank);
}

TEST(StagePlan, OwnersFillEveryExchangedBox) {
  for_all_plans([](const StagePlan& plan) {
    for (const int id : plan.nodes()) {
      if (!plan.value(id).exchanged()) continue;
      SCOPED_TRACE(plan.graph().node(id).name);
      for (int rank = 0; rank < plan.grid().size(); ++rank) {
        const Routes routes = exchange_routes(plan, id, rank);
        int64_t filled = elements(routes.local);
        for (const Route& route : routes.receive) filled += route.elements();
        ASSERT_EQ(filled, plan.value(id).extended[rank].elements());
      }
    }
  });
}

/// Holds the boxes that travel, by sender and receiver.
using Mail = std::map<std::pair<int, int>, std::vector<Box>>;

TEST(StagePlan, BothEndsOfAMessageAgree) {
  for_all_plans([](const StagePlan& plan) {
    for (const int id : plan.nodes()) {
      if (!plan.value(id).exchanged()) continue;
      Mail sent, received;
      for (int rank = 0; rank < plan.grid().size(); ++rank) {
        const Routes routes = exchange_routes(plan, id, rank);
        for (const Route& route : routes.send) sent[{rank, route.peer}] = route.boxes;
        for (const Route& route : routes.receive) received[{route.peer, rank}] = route.boxes;
      }
      ASSERT_EQ(sent, received) << plan.graph().node(id).name;
    }
  });
}

TEST(StagePlan, TheWorkOfAllTilesIsThatOfOneRankAndTheRedundantPart) {
  for_all_plans([](const StagePlan& plan) {
    int64_t useful = 0;
    for (int rank = 0; rank < plan.grid().size(); ++rank)
      useful += plan.cost(rank).flops - plan.cost(rank).redundant_flops;
    // A transposed convolution shares its work out by output pixels, rounded down.
    ASSERT_NEAR(useful, plan.batch() * flops_per_image(plan.graph()), plan.grid().size());
  });
}

TEST(StagePlan, OneRankSendsNothing) {
  for (const HaloDesign& design : {HaloDesign{}, HaloDesign{.fused = true}}) {
    const Graph graph = residual({15, 21});
    const RankCost cost = StagePlan(graph, {}, 3, design).cost(0);
    EXPECT_EQ(cost.messages, 0);
    EXPECT_EQ(cost.elements_sent, 0);
    EXPECT_EQ(cost.redundant_flops, 0);
    EXPECT_EQ(cost.flops, 3 * flops_per_image(graph));
  }
}

TEST(StagePlan, OfAnInputGivesEachTileItsMargin) {
  const Graph graph = chain(1, {16, 12});
  const StagePlan plan(graph, {.rows = 2, .cols = 2}, 1, {});
  EXPECT_EQ(plan.inputs(), (std::vector<int>{0}));
  EXPECT_EQ(to_string(plan.value(0).computed[0]), "[0,1)x[0,2)x[0,9)x[0,7)");
  EXPECT_EQ(to_string(plan.value(0).computed[3]), "[0,1)x[0,2)x[7,16)x[5,12)");
}

TEST(JoinedTail, IsOnTheFirstTileOfEachBatchPart) {
  // The pooling of the head leaves 2x2 pixels, too few for 3x3 tiles. It is fed by an exchange even
  // inside a fused group: the first tile does not compute the whole map by itself.
  const Graph graph = resnet({.image = {64, 64}, .depth = 11});
  for (const bool fused : {false, true}) {
    const StagePlan plan(graph, {.batch = 2, .rows = 3, .cols = 3}, 2, {.fused = fused});
    const ValuePlan& pool = plan.value(node_named(graph, "head.pool"));
    const ValuePlan& before = plan.value(node_named(graph, "head.relu"));
    EXPECT_TRUE(pool.joined);
    EXPECT_FALSE(before.joined);
    EXPECT_EQ(before.computed, before.owned);
    for (int rank = 0; rank < 18; ++rank) {
      const bool first = rank == 0 || rank == 9;
      EXPECT_EQ(pool.computed[rank].empty(), !first) << rank;
      EXPECT_EQ(before.extended[rank].empty(), !first) << rank;
    }
    EXPECT_EQ(to_string(before.extended[9]), "[1,2)x[0,256)x[0,16)x[0,16)");
  }
}

TEST(JoinedTail, BeginsOnlyWhereItMust) {
  const Graph graph = resnet({.image = {64, 64}, .depth = 11});
  const StagePlan plan(graph, {.rows = 2, .cols = 2}, 1, {});
  EXPECT_FALSE(plan.value(node_named(graph, "head.pool")).joined);
  EXPECT_TRUE(plan.value(node_named(graph, "head.flatten")).joined);
}

TEST(JoinedMap, MayLieBetweenTiledOnes) {
  const Graph graph = pyramid({12, 17});
  for (const bool fused : {false, true}) {
    const StagePlan plan(graph, {.batch = 2, .rows = 2, .cols = 3}, 3, {.fused = fused});
    for (const int size : {1, 2, 3, 6}) {
      const std::string cell = "pyramid.size" + std::to_string(size);
      const bool joined = size < 3;
      const int pool = node_named(graph, cell + ".pool");
      EXPECT_EQ(plan.value(pool).joined, joined);
      EXPECT_EQ(plan.pools(pool), joined);
      EXPECT_EQ(plan.value(node_named(graph, cell + ".conv")).joined, joined);
      EXPECT_FALSE(plan.value(node_named(graph, cell + ".back")).joined);
    }
    // The last tile of the second batch part reads the end of a joined map.
    const ValuePlan& two = plan.value(node_named(graph, "pyramid.size2.bn"));
    EXPECT_EQ(to_string(two.owned[6]), "[1,3)x[0,2)x[0,2)x[0,2)");
    EXPECT_EQ(to_string(two.extended[11]), "[1,3)x[0,2)x[1,2)x[1,2)");
  }
}

TEST(JoinedMap, GetsOfEachTileOnlyTheMeansToWhichItContributes) {
  const Graph graph = pyramid({12, 17});
  const StagePlan plan(graph, {.rows = 4}, 1, {});
  const std::vector<Box> parts = pooling_parts(plan, node_named(graph, "pyramid.size3.pool"));
  EXPECT_EQ(to_string(parts[0]), "[0,1)x[0,2)x[0,1)x[0,3)");
  EXPECT_EQ(to_string(parts[1]), "[0,1)x[0,2)x[0,2)x[0,3)");  // rows 3 to 5 of windows of 4
  EXPECT_EQ(to_string(parts[3]), "[0,1)x[0,2)x[2,3)x[0,3)");
}

using Names = std::vector<std::string>;

/// Returns the names, inside their cell, of the nodes that make a value together.
Names group_of(const StagePlan& plan, const std::string& cell, const std::string& name) {
  Names names;
  for (const int id : plan.value(node_named(plan.graph(), cell + name)).fused)
    names.push_back(plan.graph().node(id).name.substr(cell.size()));
  return names;
}

TEST(FusedGroup, TakesTheSumAndTheReluBehindABatchNorm) {
  const Graph graph = resnet({.image = {32, 32}, .resnet_version = 1, .depth = 20});
  const StagePlan plan(graph, {.rows = 2}, 1, {});
  for (const std::string cell : {"stage0.block1.", "stage1.block0."}) {
    EXPECT_EQ(group_of(plan, cell, "relu"), (Names{"r2.bn", "add", "relu"}));
    EXPECT_EQ(group_of(plan, cell, "r1.relu"), (Names{"r1.bn", "r1.relu"}));
    EXPECT_TRUE(plan.value(node_named(graph, cell + "add")).fused_into_consumer);
    EXPECT_FALSE(plan.value(node_named(graph, cell + "relu")).rematerialised);
  }
}

TEST(FusedGroup, TakesTheSumBehindAConvolution) {
  const Graph graph = resnet({.image = {32, 32}, .resnet_version = 2, .depth = 29});
  const StagePlan plan(graph, {.rows = 2}, 1, {});
  const std::string cell = "stage0.block1.";
  EXPECT_EQ(group_of(plan, cell, "add"), (Names{"r3.conv", "add"}));
  EXPECT_EQ(group_of(plan, cell, "r1.conv"), Names{"r1.conv"});
  const auto& reads = plan.value(node_named(graph, cell + "add")).reads;
  ASSERT_EQ(reads.size(), 2U);
  EXPECT_EQ(reads[0].from, node_named(graph, cell + "r3.relu"));
  EXPECT_EQ(reads[1].from, node_named(graph, "stage0.block0.add"));
}

std::string complaint(const Graph& graph, const Grid& grid, int64_t batch = 1,
                      const HaloDesign& design = {}) {
  try {
    const StagePlan plan(graph, grid, batch, design);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Complaint, AboutAGridThatIsFinerThanTheImage) {
  const Graph graph = residual({8, 6});
  EXPECT_EQ(complaint(graph, {.rows = 8, .cols = 6}), "");
  EXPECT_EQ(complaint(graph, {.rows = 9}),
            "an image of 8x6 is too small for 9 rows and 1 columns of tiles; use fewer spatial "
            "parts or a larger image");
  EXPECT_EQ(complaint(graph, {.cols = 7}),
            "an image of 8x6 is too small for 1 rows and 7 columns of tiles; use fewer spatial "
            "parts or a larger image");
}

TEST(Complaint, AboutMoreBatchPartsThanImages) {
  EXPECT_EQ(complaint(chain(1, {8, 8}), {.batch = 3}, 2),
            "2 images cannot be shared by 3 batch parts; use a larger batch");
}

TEST(Complaint, AboutFusingNothing) {
  EXPECT_EQ(complaint(chain(1, {8, 8}), {}, 1, {.fused = true, .fused_layers = 0}),
            "0 fused layers are too few; use at least 1");
}

TEST(SomeCells, ReadAndLeaveWhatIsLiveAtTheirCuts) {
  const Graph graph = amoebanet({.image = {128, 128}, .num_layers = 6, .num_filters = 64});
  const Grid tiles{.rows = 2, .cols = 2};
  const StagePlan first(graph, tiles, 1, {}, {0, 5});
  const StagePlan second(graph, {}, 1, {}, {5, 12});
  const std::vector<std::string> cut{"cell1.concat", "cell2.concat"};
  EXPECT_EQ(names_of(first, first.inputs()), (std::vector<std::string>{"input"}));
  EXPECT_EQ(names_of(first, first.outputs()), cut);
  EXPECT_EQ(names_of(second, second.inputs()), cut);
  EXPECT_EQ(names_of(second, second.outputs()), (std::vector<std::string>{"classify.linear"}));
  EXPECT_EQ(first.nodes().size() + second.nodes().size() + 1, graph.nodes().size());
}

TEST(SomeCells, AreGivenTheirInputsWithTheMarginsTheyNeed) {
  const Graph graph = chain(3, {16, 16});
  const Grid columns{.cols = 2};
  const StagePlan plan(graph, columns, 1, {.fused = true, .fused_layers = 2}, {1, 3});
  ASSERT_EQ(names_of(plan, plan.inputs()), (std::vector<std::string>{"cell0.conv"}));
  EXPECT_EQ(to_string(plan.value(plan.inputs()[0]).owned[1]), "[0,1)x[0,2)x[0,16)x[8,16)");
  EXPECT_EQ(to_string(plan.value(plan.inputs()[0]).computed[1]), "[0,1)x[0,2)x[0,16)x[6,16)");
  EXPECT_TRUE(exchanges(plan).empty());
}

TEST(SomeCells, NeedNoRoomForTilesElsewhere) {
  // Layers of other stages may be smaller than this stage's grid.
  const Graph graph = resnet({.image = {64, 64}, .depth = 11});
  const auto small_maps = [&](const CellRange& cells) {
    const StagePlan plan(graph, {.rows = 32}, 1, {}, cells);
    return std::ranges::count_if(plan.nodes(), [&](int id) {
      return plan.value(id).joined && graph.node(id).shape.spatial();
    });
  };
  EXPECT_EQ(small_maps({0, 2}), 0);
  EXPECT_GT(small_maps({0, 4}), 0);
}

}  // namespace
}  // namespace mpi4dl
