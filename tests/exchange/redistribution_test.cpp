#include "exchange/redistribution.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/collectives.hpp"
#include "geometry/grid.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

using Boxes = std::vector<std::vector<Box>>;

/// Says how a redistribution can travel; results must not depend on it.
enum class Path { shared_memory, messages, staged };

/// Makes all redistributions in its scope take one path.
class OnPath {
 public:
  explicit OnPath(Path path) : context_(world().context()), memory_(context_.shared_memory) {
    if (path != Path::shared_memory) context_.shared_memory = nullptr;
    context_.stage_through_host = path == Path::staged;
  }
  ~OnPath() {
    context_.shared_memory = memory_;
    context_.stage_through_host = false;
  }
  OnPath(const OnPath&) = delete;
  OnPath& operator=(const OnPath&) = delete;

 private:
  CommContext& context_;
  std::shared_ptr<SharedMemory> memory_;
};

/// Is a random problem, the same on all ranks: some ranks own a grid over the tensor, some own
/// nothing; each rank needs none, one or two boxes, which may reach beyond the tensor.
struct Problem {
  std::vector<int64_t> shape;
  Boxes owned, needed;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Problem problem(int ranks) {
    std::vector<int64_t> shape{pick(1, 3), pick(1, 4)};
    for (int64_t axes = pick(2, 3); axes > 0; --axes) shape.push_back(pick(1, 13));
    return problem(ranks, std::move(shape));
  }

  /// Draws routes with so many elements that each is several messages.
  Problem large_problem(int ranks) {
    if (pick(0, 1) == 1)
      return problem(ranks, {pick(1, 3), pick(3, 9), pick(60, 99), pick(60, 99)});
    return problem(ranks, {1, pick(1, 9), pick(10, 30), pick(30, 60), pick(30, 60)});
  }

  Problem problem(int ranks, std::vector<int64_t> shape) {
    Problem p;
    p.shape = std::move(shape);
    const int owners = static_cast<int>(pick(1, ranks));
    const Grid grid = random_grid(owners);
    std::vector<int> order(ranks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    p.owned.resize(ranks);
    for (int i = 0; i < owners; ++i) p.owned[order[i]] = {grid.owned(p.shape, i)};
    for (int rank = 0; rank < ranks; ++rank) p.needed.push_back(random_boxes(p.shape));
    return p;
  }

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

 private:
  Grid random_grid(int size) {
    std::vector<Grid> all;
    for (int b = 1; b <= size; ++b)
      for (int r = 1; r * b <= size; ++r)
        if (size % (b * r) == 0) all.push_back({b, r, size / (b * r)});
    return all[pick(0, static_cast<int64_t>(all.size()) - 1)];
  }

  std::vector<Box> random_boxes(const std::vector<int64_t>& shape) {
    const int64_t count = pick(0, 2);
    if (count == 0) return {};
    Box box = Box::whole(shape);
    for (int axis = 0; axis < box.axes(); ++axis) {
      const int64_t a = pick(-2, shape[axis] + 1), b = pick(-2, shape[axis] + 1);
      box[axis] = {std::min(a, b), std::max(a, b) + 1};
    }
    if (count == 1) return {box};
    Box first = box, second = box;
    const int axis = static_cast<int>(pick(0, box.axes() - 1));
    first[axis].end = second[axis].begin = pick(box[axis].begin, box[axis].end);
    return {first, second};
  }

  std::mt19937_64 random_;
};

Box around(const std::vector<Box>& boxes, size_t axes) {
  Box all = Box::none(static_cast<int>(axes));
  for (const Box& box : boxes) all = hull(all, box);
  return all;
}

Patch zeros(const Box& box) {
  Patch patch = make_patch(world(), box, at::kDouble);
  patch.data.zero_();
  return patch;
}

/// Every element tells its global coordinates.
at::Tensor coordinates(const Box& box) {
  at::Tensor values = at::zeros(box.shape(), at::kDouble);
  for (int axis = 0; axis < box.axes(); ++axis) {
    std::vector<int64_t> shape(box.axes(), 1);
    shape[axis] = box[axis].length();
    values = values * 100 + at::arange(box[axis].begin, box[axis].end, at::kDouble).view(shape);
  }
  return on_device(values);
}

/// Returns what `to` must hold: coordinates where a needed box meets what somebody owns, `old`
/// elsewhere.
at::Tensor expected_fill(const Problem& p, const Box& to, int rank, double old) {
  Patch expected{to, at::full(to.shape(), old, backend().options(at::kDouble))};
  for (const Box& need : p.needed[rank])
    for (const auto& owner : p.owned)
      for (const Box& mine : owner)
        if (const Box both = intersect(need, mine); !both.empty())
          expected.view(both).copy_(coordinates(both));
  return expected.data;
}

double inner_product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor sum = (a * b).sum();
  all_reduce(sum, world());
  return sum.item<double>();
}

class RedistributionPaths : public ::testing::TestWithParam<Path> {};

TEST_P(RedistributionPaths, FillsEachNeededBoxWithItsGlobalCoordinates) {
  const OnPath path(GetParam());
  Generator generator(11);
  for (int i = 0; i < 210; ++i) {
    const Problem p =
        i < 200 ? generator.problem(world().size()) : generator.large_problem(world().size());
    const int rank = world().rank();
    const Patch from = zeros(around(p.owned[rank], p.shape.size()));
    const Patch to = zeros(around(p.needed[rank], p.shape.size()));
    from.data.copy_(coordinates(from.box));
    to.data.fill_(-1);
    Redistribution(world(), p.owned, p.needed).run(from, to);
    ASSERT_TRUE(at::equal(to.data, expected_fill(p, to.box, rank, -1))) << "case " << i;
  }
}

TEST_P(RedistributionPaths, AdjointSatisfiesItsDefinition) {
  const OnPath path(GetParam());
  Generator generator(7);
  at::manual_seed(100 + world().rank());
  for (int i = 0; i < 210; ++i) {
    const Problem p =
        i < 200 ? generator.problem(world().size()) : generator.large_problem(world().size());
    const int rank = world().rank();
    const Patch x = zeros(around(p.owned[rank], p.shape.size()));
    const Patch y = zeros(around(p.needed[rank], p.shape.size()));
    x.data.normal_();
    y.data.normal_();
    const Patch ax = zeros(y.box), aty = zeros(x.box);
    const Redistribution a(world(), p.owned, p.needed);
    a.run(x, ax);
    a.run_adjoint(y, aty);
    const double left = inner_product(ax.data, y.data), right = inner_product(x.data, aty.data);
    const double scale = std::sqrt(inner_product(ax.data, ax.data) * inner_product(y.data, y.data));
    ASSERT_NEAR(left, right, 1e-12 * std::max(scale, 1.0)) << "case " << i;
  }
}

TEST_P(RedistributionPaths, SourcesOutsideOfSharedMemoryAndInOtherLayoutsTravelToo) {
  const OnPath path(GetParam());
  const std::vector<int64_t> shape{2, 3, 12, 10};
  const Grid grid = make_grid("square", world().size());
  Boxes owned, needed;
  for (int rank = 0; rank < grid.size(); ++rank) {
    owned.push_back({grid.owned(shape, rank)});
    needed.push_back({Box::whole(shape)});
  }
  const Box mine = owned[world().rank()][0];
  const Patch from{mine, coordinates(mine).contiguous()};
  const Patch to{Box::whole(shape), at::zeros(shape, backend().options(at::kDouble))};
  Redistribution(world(), owned, needed).run(from, to);
  EXPECT_TRUE(at::equal(to.data, coordinates(to.box)));
}

INSTANTIATE_TEST_SUITE_P(All, RedistributionPaths,
                         ::testing::Values(Path::shared_memory, Path::messages, Path::staged));

/// Is a halo of one pixel around each tile of an image.
struct HaloProblem {
  std::vector<int64_t> shape;
  Grid grid = make_grid("square", world().size());
  Boxes owned, needed;

  explicit HaloProblem(std::vector<int64_t> image = {1, 2, 9, 11}) : shape(std::move(image)) {
    for (int rank = 0; rank < grid.size(); ++rank) {
      Box box = grid.owned(shape, rank);
      owned.push_back({box});
      for (const int axis : {2, 3}) box[axis] = {box[axis].begin - 1, box[axis].end + 1};
      needed.push_back({intersect(box, Box::whole(shape))});
    }
  }
  const Box& mine() const { return owned[world().rank()][0]; }
  const Box& wanted() const { return needed[world().rank()][0]; }
};

TEST(Redistribution, HaloLandsInTheBufferAroundTheTile) {
  const HaloProblem p;
  const Patch buffer = zeros(p.wanted());
  buffer.view(p.mine()).copy_(coordinates(p.mine()));
  Redistribution(world(), p.owned, p.needed).run({p.mine(), buffer.view(p.mine())}, buffer);
  EXPECT_TRUE(at::equal(buffer.data, coordinates(p.wanted())));
}

TEST(Redistribution, AdjointInPlaceAddsOnlyWhatOthersSend) {
  const HaloProblem p;
  const Patch buffer = zeros(p.wanted());
  buffer.data.fill_(1);
  Redistribution(world(), p.owned, p.needed).run_adjoint(buffer, {p.mine(), buffer.view(p.mine())});
  Patch expected{p.mine(), at::zeros(p.mine().shape(), backend().options(at::kDouble))};
  for (const auto& boxes : p.needed)
    if (const Box both = intersect(boxes[0], p.mine()); !both.empty()) expected.view(both).add_(1);
  EXPECT_TRUE(at::equal(buffer.view(p.mine()), expected.data));
}

TEST(Redistribution, ManyFlightsOfOnePlanDoNotMixUp) {
  const HaloProblem p;
  const Redistribution halo(world(), p.owned, p.needed);
  std::vector<Patch> buffers;
  std::vector<Redistribution::Flight> flights;
  for (int i = 0; i < 5; ++i) {
    buffers.push_back(zeros(p.wanted()));
    buffers.back().view(p.mine()).copy_(coordinates(p.mine()) + i);
    flights.push_back(halo.start({p.mine(), buffers.back().view(p.mine())}, buffers.back()));
  }
  for (int i = 4; i >= 0; --i) flights[i].finish();
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(at::equal(buffers[i].data, coordinates(p.wanted()) + i)) << "flight " << i;
}

TEST_P(RedistributionPaths, WhatIsSentMayBeLetGoOfAtOnce) {
  const OnPath path(GetParam());
  const HaloProblem p({1, 96, 60, 50});  // edges that peers read where they lie
  const Redistribution halo(world(), p.owned, p.needed);
  const Patch to = zeros(p.wanted());
  Patch from = zeros(p.mine());
  from.data.copy_(coordinates(p.mine()));
  Redistribution::Flight flight = halo.start(from, to);
  from = {};
  const Patch other = zeros(p.mine());  // in its place, if that is free
  barrier(world());
  flight.receive();
  EXPECT_TRUE(flight.received());
  EXPECT_TRUE(at::equal(to.data, coordinates(p.wanted())));
}

TEST(Redistribution, CountsWhatItSends) {
  const HaloProblem p;
  const Redistribution halo(world(), p.owned, p.needed);
  const Traffic before = world().context().sent;
  const Patch buffer = zeros(p.wanted());
  halo.run({p.mine(), buffer.view(p.mine())}, buffer);
  int64_t elements = 0;
  for (const Route& route : halo.routes().send) elements += route.elements();
  EXPECT_EQ(world().context().sent.messages - before.messages,
            static_cast<int64_t>(halo.routes().send.size()));
  EXPECT_EQ(world().context().sent.bytes - before.bytes, elements * 8);
}

}  // namespace
}  // namespace mpi4dl::testing
