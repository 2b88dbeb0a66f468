// What training keeps of parameters that nodes share, of frozen ones, and of those that weights are
// computed from.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "data/synthetic.hpp"
#include "graph/text.hpp"
#include "support/scratch.hpp"
#include "support/world.hpp"
#include "train/checkpoint_io.hpp"
#include "train/model.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

using testing::Scratch;
using testing::world;

Graph small_model() {
  Graph graph({.channels = 2, .space = {12, 12}});
  graph.begin_cell("all");
  const Convolution conv{.out_channels = 2, .kernel = {3, 3}, .padding = {1, 1}, .bias = false};
  Value x = graph.input();
  for (const char* node : {"first", "second"})
    x = graph.add(node, conv, {x}, {{.name = "twice.weight"}});
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3, .bias = false}, {x},
                             {{.name = "fixed.weight", .frozen = true}}));
  return graph;
}

/// Makes two cells that share a frozen weight.
Graph frozen_twice() {
  Graph graph({.channels = 2, .space = {12, 12}});
  const Convolution conv{.out_channels = 2, .kernel = {3, 3}, .padding = {1, 1}, .bias = false};
  Value x = graph.input();
  for (const char* cell : {"first", "second"}) {
    graph.begin_cell(cell);
    x = graph.add("trained", conv, {x});
    x = graph.add("fixed", conv, {x}, {{.name = "fixed.weight", .frozen = true}});
  }
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3}, {x}));
  return graph;
}

/// Gives each stage as many cells, so far as that is possible.
std::vector<CellRange> cells_of(const Graph& graph, const Layout& layout) {
  const int cells = static_cast<int>(graph.cells().size());
  const int stages = static_cast<int>(layout.stages().size());
  std::vector<CellRange> ranges;
  for (int stage = 0; stage < stages; ++stage)
    ranges.push_back({cells * stage / stages, cells * (stage + 1) / stages});
  return ranges;
}

TrainerOptions adam(std::vector<CellRange> cells, uint64_t seed) {
  return {.cells = std::move(cells),
          .type = at::kDouble,
          .seed = seed,
          .optimizer = {.kind = OptimizerOptions::Kind::adam},
          .learning_rate = {.base = 0.01}};
}

Layout tiles() {
  return {world().size(), {Grid{1, world().size(), 1}}};
}

/// Trains on tiles of all ranks, or in another layout.
struct Training {
  explicit Training(const Graph& graph, uint64_t seed = 1) : Training(graph, tiles(), seed) {}
  Training(const Graph& graph, const Layout& layout_of_ranks, uint64_t seed)
      : layout(layout_of_ranks),
        data({.size = 4, .classes = 3, .image = graph.shape(graph.input()), .seed = 5}),
        trainer(graph, layout,
                share_work(layout, {.batch = 4 / layout.directions(), .times = layout.directions()},
                           layout.directions() == 2 ? ScheduleKind::gems : ScheduleKind::gpipe,
                           world().rank()),
                adam(cells_of(graph, layout), seed), world()) {}

  double step() {
    SampleBatch images = all_samples(data);
    return trainer.step(images).loss;
  }

  Layout layout;
  RandomImages data;
  Trainer trainer;
};

std::vector<std::string> names_of(const auto& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(FrozenParameters, HaveNoGradientAndStayAsTheyAre) {
  const Graph graph = small_model();
  Training training(graph);
  const Parameters& parameters = *training.trainer.parameters().at(0);
  EXPECT_EQ(parameters.gradient_memory().numel(), 2 * 2 * 9);
  EXPECT_EQ(names_of(parameters.trained()), std::vector<std::string>{"twice.weight"});
  EXPECT_EQ(names_of(parameters.frozen()), std::vector<std::string>{"fixed.weight"});
  const at::Tensor fixed = parameters.frozen().at("fixed.weight").clone();
  const at::Tensor trained = parameters.trained().at("twice.weight").clone();
  training.step();
  EXPECT_TRUE(at::equal(parameters.frozen().at("fixed.weight"), fixed));
  EXPECT_FALSE(at::equal(parameters.trained().at("twice.weight"), trained));
}

TEST(FrozenParameters, AreComparedAmongReplicas) {
  const Graph graph = small_model();
  const Training training(graph);
  EXPECT_TRUE(training.trainer.replicas_agree());
  if (world().rank() == world().size() - 1)
    training.trainer.parameters().at(0)->frozen().at("fixed.weight").add_(1);
  EXPECT_EQ(training.trainer.replicas_agree(), world().size() == 1);
}

/// Returns layouts of all ranks in two stages: none on one rank.
std::vector<Layout> in_two_stages() {
  const int ranks = world().size();
  if (ranks == 1) return {};
  std::vector<Layout> found{Layout(ranks, {Grid{}, Grid{1, ranks - 1, 1}})};
  if (ranks == 2) found.emplace_back(ranks, std::vector<Grid>(2), /*gems=*/true);
  return found;
}

TEST(FrozenParameters, MayBeSharedByStages) {
  const Graph graph = frozen_twice();
  for (const Layout& layout : in_two_stages()) {
    Training one(graph), two(graph, layout, /*seed=*/1);
    for (int step = 0; step < 3; ++step) EXPECT_NEAR(one.step(), two.step(), 1e-12) << step;
  }
}

/// Counts the tensors in the files of a checkpoint.
size_t tensors_in_parts(const Checkpoint& saved) {
  size_t count = 0;
  for (const auto& [file, digest] : saved.manifest().files)
    count += SafetensorsFile(saved.folder() + "/" + file).tensors().size();
  return count;
}

void expect_weights(const Trainer& trainer, const Checkpoint& saved, const char* what) {
  for (const auto& [stage, state] : trainer.state())
    for (const auto& [name, values] : state) {
      if (!is_weight(name)) continue;
      EXPECT_TRUE(at::equal(saved.read(name), values)) << what << " " << name;
    }
}

/// One stage writes it, and all of them read it.
TEST(Checkpoint, HasOnceWhatStagesShare) {
  const Graph graph = frozen_twice();
  for (const Layout& layout : in_two_stages()) {
    const Scratch scratch;
    const CheckpointFolder folder(scratch / "run");
    Training first(graph, layout, /*seed=*/1);
    first.step();
    save_checkpoint(folder, first.trainer, {}, world());
    const Checkpoint saved(folder.checkpoint(1));
    EXPECT_EQ(tensors_in_parts(saved), saved.tensors().size());
    Training restored(graph, layout, /*seed=*/2), loaded(graph, layout, /*seed=*/3);
    load_checkpoint(saved, restored.trainer, world());
    expect_weights(restored.trainer, saved, "restored");
    load_weights(scratch / "run", {.name = "small", .graph = graph}, loaded.trainer, world());
    expect_weights(loaded.trainer, saved, "loaded");
    EXPECT_NEAR(restored.step(), first.step(), 1e-12);
  }
}

Graph weight_normed() {
  return parse_graph(
      "input 2x8x8\ncell all\n"
      "all.conv = convolution(input) out_channels=4 kernel=3x3 bias=false with "
      "multiply(v:4x2x3x3, divide(g:4x1x1x1, norm(v:4x2x3x3, 1x2x3)))\n"
      "all.pool = global_average_pooling(all.conv)\n"
      "all.linear = linear(all.pool) out_features=3 with standardise(frozen w:3x4, 1, 0.001)\n"
      "output all.linear\n");
}

/// The weight of a step is that of the values before it, also behind an update that ranks share.
TEST(ComputedWeights, FollowTheirParameters) {
  const Graph graph = weight_normed();
  Training training(graph);
  const Parameters& parameters = *training.trainer.parameters().at(0);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor v = parameters.trained().at("v").clone();
    const at::Tensor g = parameters.trained().at("g").clone();
    training.step();
    const at::Tensor length = v.square().sum({1, 2, 3}, /*keepdim=*/true).sqrt();
    EXPECT_TRUE(at::allclose(parameters.of(1)[0], v * g / length, 1e-5, 1e-6)) << step;
    EXPECT_FALSE(at::equal(parameters.trained().at("v"), v)) << step;
    EXPECT_FALSE(at::equal(parameters.trained().at("g"), g)) << step;
  }
}

TEST(ComputedWeights, AreNoParameters) {
  const Graph graph = weight_normed();
  const Training training(graph);
  const Parameters& parameters = *training.trainer.parameters().at(0);
  EXPECT_EQ(names_of(parameters.trained()),
            (std::vector<std::string>{"all.linear.bias", "g", "v"}));
  EXPECT_EQ(names_of(parameters.frozen()), std::vector<std::string>{"w"});
  EXPECT_TRUE(parameters.sums_of(1)[0].defined());
  EXPECT_FALSE(parameters.sums_of(3)[0].defined());  // of a weight of frozen ones
}

/// A checkpoint holds the formula, and its parameters under their own names.
TEST(Checkpoint, KeepsComputedWeights) {
  const Graph graph = weight_normed();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training training(graph);
  training.step();
  const KeptModel kept{.name = "small.graph", .graph = to_text(graph)};
  save_checkpoint(folder, training.trainer, {}, world(), &kept);
  EXPECT_EQ(to_text(model_of(folder.checkpoint(1)).graph), to_text(graph));
  EXPECT_EQ(names_of(all_weights(Checkpoint(folder.checkpoint(1)))),
            (std::vector<std::string>{"all.linear.bias", "g", "v", "w"}));
}

TEST(Checkpoint, HasSharedParametersOnceAndFrozenOnesWithoutState) {
  const Graph graph = small_model();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training first(graph);
  first.step();
  save_checkpoint(folder, first.trainer, {}, world());
  const Checkpoint saved(folder.checkpoint(1));
  EXPECT_EQ(names_of(saved.tensors()),
            (std::vector<std::string>{"exp_avg/twice.weight", "exp_avg_sq/twice.weight",
                                      "fixed.weight", "twice.weight"}));
  Training second(graph, /*seed=*/2);  // which starts from other values
  load_checkpoint(saved, second.trainer, world());
  const auto state = second.trainer.state();
  for (const auto& [name, values] : state.at(0))
    EXPECT_TRUE(at::equal(saved.read(name), values)) << name;
}

/// Everything that a file of the model had comes back: all names of a parameter, and what is none.
TEST(Checkpoint, KeepsAModelOfAFile) {
  const Graph graph = small_model();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training training(graph);
  training.step();
  const KeptModel kept{
      .name = "small.graph",
      .graph = to_text(graph),
      .exported = {{"twice.weight", {{"again.weight", {2, 18}}, {"twice.weight", {2, 2, 3, 3}}}}},
      .carried = {{"bn.num_batches_tracked", at::full({}, 7, at::kLong)}}};
  save_checkpoint(folder, training.trainer, {}, world(), &kept);
  EXPECT_EQ(checkpoint_with_graph(scratch / "run"), folder.checkpoint(1));
  const Model model = model_of(folder.checkpoint(1));
  EXPECT_EQ(model.name, "small.graph");
  EXPECT_EQ(to_text(model.graph), kept.graph);
  EXPECT_EQ(model.exported, kept.exported);
  EXPECT_EQ(names_of(model.carried_tensors()), std::vector<std::string>{"bn.num_batches_tracked"});
  const TensorMap weights = all_weights(Checkpoint(folder.checkpoint(1)));
  EXPECT_EQ(names_of(weights), (std::vector<std::string>{"again.weight", "bn.num_batches_tracked",
                                                         "fixed.weight", "twice.weight"}));
  EXPECT_EQ(weights.at("bn.num_batches_tracked").item<int64_t>(), 7);
  EXPECT_EQ(weights.at("bn.num_batches_tracked").scalar_type(), at::kLong);
  EXPECT_TRUE(weights.at("again.weight").view({2, 2, 3, 3}).equal(weights.at("twice.weight")));
}

TEST(Checkpoint, NoticesADamagedGraph) {
  const Graph graph = small_model();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  const Training training(graph);
  const KeptModel kept{.name = "small.graph", .graph = to_text(graph)};
  save_checkpoint(folder, training.trainer, {}, world(), &kept);
  barrier(world());
  if (world().rank() != 0) return;
  write_durably(folder.checkpoint(0) + "/" + kGraphFile, kept.graph + "\n");
  EXPECT_THROW(Checkpoint(folder.checkpoint(0)).check_files(), Error);
  EXPECT_THROW(Checkpoint(folder.checkpoint(0)).graph(), Error);
}

}  // namespace
}  // namespace mpi4dl
