// What a checkpoint gives back is what was saved, in any layout; damage is noticed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "data/batch_source.hpp"
#include "data/synthetic.hpp"
#include "models/registry.hpp"
#include "storage/torch_file.hpp"
#include "support/scratch.hpp"
#include "train/checkpointing.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

using testing::Scratch;
using testing::world;

constexpr int64_t kBatch = 4;

Graph small_model() {
  return build_model({.name = "resnet",
                      .image = {16, 16},
                      .classes = 3,
                      .resnet_version = 1,
                      .depth = 8,
                      .global_pool_head = true});
}

/// Makes a model of a few bytes: every one of them gets damaged.
Graph tiny_model() {
  Graph graph({.channels = 1, .space = {2, 2}});
  graph.begin_cell("all");
  Value x = graph.add("conv", Convolution{.out_channels = 1, .kernel = {1, 1}}, {graph.input()});
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3}, {x}));
  return graph;
}

TrainerOptions adam(c10::ScalarType type) {
  TrainerOptions options;
  options.type = type;
  options.optimizer.kind = OptimizerOptions::Kind::adam;
  options.learning_rate.base = 0.01;
  options.stage.batch_norm = BatchNormScope::replicas;  // the same for any number of replicas
  return options;
}

/// Has a trainer in a layout that uses all ranks, and its images.
struct Training {
  Training(const Graph& graph, const Layout& layout, TrainerOptions options)
      : data({.size = 64, .classes = 3, .image = graph.shape(graph.input()), .seed = 5}),
        trainer(graph, layout,
                share_work(layout,
                           {kBatch / layout.replicas() / layout.directions(), 1,
                            layout.directions(), layout.replicas()},
                           layout.directions() == 2 ? ScheduleKind::gems : ScheduleKind::gpipe,
                           world().rank()),
                with_cells(graph, layout, std::move(options)), world()) {}

  static TrainerOptions with_cells(const Graph& graph, const Layout& layout,
                                   TrainerOptions options) {
    const int cells = static_cast<int>(graph.cells().size());
    const int stages = static_cast<int>(layout.stages().size());
    for (int stage = 0; stage < stages; ++stage)
      options.cells.push_back({cells * stage / stages, cells * (stage + 1) / stages});
    return options;
  }

  double step() {
    std::vector<int64_t> samples(kBatch);
    std::iota(samples.begin(), samples.end(), trainer.steps() * kBatch % 64);
    SampleBatch images(data, samples);
    return trainer.step(images).loss;
  }

  RandomImages data;
  Trainer trainer;
};

/// Returns the layouts of this number of ranks.
std::vector<Layout> layouts() {
  const int ranks = world().size();
  if (ranks == 1) return {Layout(1, {Grid{}})};
  std::vector<Layout> found{Layout(ranks, {Grid{}}),              // replicas
                            Layout(ranks, {Grid{ranks, 1, 1}}),   // one batch
                            Layout(ranks, {Grid{1, ranks, 1}})};  // tiles
  if (ranks == 4) {
    found.emplace_back(4, std::vector<Grid>{Grid{}, Grid{}, Grid{}, Grid{}});
    found.emplace_back(4, std::vector<Grid>{Grid{}, Grid{}, Grid{}, Grid{}}, /*gems=*/true);
    found.emplace_back(4, std::vector<Grid>{Grid{1, 1, 3}, Grid{}});
  }
  return found;
}

void expect_same_state(const Trainer& a, const Checkpoint& saved) {
  for (const auto& [stage, state] : a.state())
    for (const auto& [name, values] : state)
      EXPECT_TRUE(at::equal(saved.read(name), values.cpu())) << name;
}

TEST(Checkpoint, GoesOnToTheBitInTheSameLayout) {
  const Graph graph = small_model();
  for (const c10::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Layout& layout : layouts()) {
      const Scratch scratch;
      const CheckpointFolder folder(scratch / "run");
      Training first(graph, layout, adam(type));
      first.step();
      save_checkpoint(folder, first.trainer, {}, world());
      first.step();
      const double expected = first.step();

      Training second(graph, layout, adam(type));
      load_checkpoint(Checkpoint(folder.checkpoint(1)), second.trainer, world());
      second.step();
      EXPECT_EQ(second.step(), expected);
      EXPECT_EQ(second.trainer.steps(), 3);
      const auto theirs = first.trainer.state();
      for (const auto& [stage, state] : second.trainer.state())
        for (const auto& [name, values] : state)
          EXPECT_TRUE(at::equal(values, theirs.at(stage).at(name))) << name;
    }
  }
}

TEST(Checkpoint, LoadsInEveryLayout) {
  const Graph graph = small_model();
  for (const Layout& from : layouts()) {
    const Scratch scratch;
    const CheckpointFolder folder(scratch / "run");
    Training saved(graph, from, adam(at::kDouble));
    saved.step();
    save_checkpoint(folder, saved.trainer, {}, world());
    const double expected = saved.step();
    check_checkpoint(folder.checkpoint(1), world());
    const Checkpoint checkpoint(folder.checkpoint(1));
    for (const Layout& to : layouts()) {
      Training loaded(graph, to, adam(at::kDouble));
      load_checkpoint(checkpoint, loaded.trainer, world());
      expect_same_state(loaded.trainer, checkpoint);
      const double loss = loaded.step();
      // Two directions take half of the batch each, which is another batch norm.
      if (from.directions() == to.directions()) {
        EXPECT_NEAR(loss, expected, 1e-10 * expected);
      }
    }
  }
}

TEST(Checkpoint, WritesEveryTensorOnceAndSharesTheWork) {
  const Graph graph = small_model();
  const Layout layout(world().size(), {Grid{}});
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training training(graph, layout, adam(at::kFloat));
  save_checkpoint(folder, training.trainer, {}, world());
  const Manifest manifest = Checkpoint(folder.checkpoint(0)).manifest();
  int64_t most = 0, least = std::numeric_limits<int64_t>::max();
  size_t tensors = 0;
  for (const auto& [file, digest] : manifest.files) {
    most = std::max(most, digest.bytes);
    least = std::min(least, digest.bytes);
    tensors += SafetensorsFile(folder.checkpoint(0) + "/" + file).tensors().size();
  }
  EXPECT_EQ(static_cast<int>(manifest.files.size()), world().size());
  EXPECT_EQ(tensors, manifest.tensors.size());
  EXPECT_LT(static_cast<double>(most), 1.2 * static_cast<double>(least));
}

TEST(Checkpointing, GoesOnWhereTheDataWere) {
  const Graph graph = tiny_model();
  const Scratch scratch;
  const auto quiet = [](const std::string&) {};
  const CheckpointOptions options{.folder = scratch / "run", .keep = 1, .resume = "auto"};
  Training training(graph, Layout(world().size(), {Grid{}}), adam(at::kFloat));
  Checkpointing first(options, {{"--seed", "1"}}, world(), quiet);
  EXPECT_EQ(first.resume(training.trainer).position, Position{});
  first.after_step(training.trainer, {{2, 3}, {4, 7}}, /*steps=*/5, /*last=*/false);  // not due
  EXPECT_EQ(first.resume(training.trainer).position, Position{});
  first.after_step(training.trainer, {{2, 3}, {4, 7}}, /*steps=*/5, /*last=*/true);
  const DataState found = first.resume(training.trainer);
  EXPECT_EQ(found.position, (Position{2, 3}));
  EXPECT_EQ(found.left_out, (std::vector<int64_t>{4, 7}));
  first.after_step(training.trainer, {{2, 5}}, /*steps=*/5, /*last=*/false);
  EXPECT_EQ(first.resume(training.trainer).position, (Position{3, 0}));
  Checkpointing other(options, {{"--seed", "2"}}, world(), quiet);
  EXPECT_THROW(other.resume(training.trainer), UsageError);
}

TEST(Checkpointing, KeepsTheNamesOfClasses) {
  const Graph graph = tiny_model();
  const Scratch scratch;
  const auto quiet = [](const std::string&) {};
  CheckpointOptions options{.folder = scratch / "run", .resume = "auto"};
  options.classes = {"normal", "tumour \u00e4"};
  Training training(graph, Layout(world().size(), {Grid{}}), adam(at::kFloat));
  Checkpointing(options, {}, world(), quiet)
      .after_step(training.trainer, {{1, 1}}, /*steps=*/5, /*last=*/true);
  EXPECT_EQ(Checkpoint(scratch / "run/step-00000000").manifest().classes, options.classes);
  EXPECT_NO_THROW(Checkpointing(options, {}, world(), quiet).resume(training.trainer));
  options.classes = {};  // numbers, as in checkpoints that know no names
  EXPECT_NO_THROW(Checkpointing(options, {}, world(), quiet).resume(training.trainer));
  options.classes = {"cat", "dog"};
  EXPECT_THROW(Checkpointing(options, {}, world(), quiet).resume(training.trainer), UsageError);
}

/// Returns a manifest with tensors of these names.
std::string manifest_text(int version, const std::vector<std::string>& keys) {
  Manifest manifest;
  for (const std::string& key : keys) manifest.tensors[key] = {"part", key, {at::kFloat, {3}}};
  std::string text = to_json(manifest);
  const std::string current = "\"version\": 3";
  return text.replace(text.find(current), current.size(), fmt::format("\"version\": {}", version));
}

/// Returns "name in the manifest = name in the file" for each tensor.
std::vector<std::string> names_in(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest.tensors) names.push_back(name + " = " + tensor.key);
  return names;
}

TEST(Manifest, GivesTheOptimizerStateOfVersion1TheNamesOfTorch) {
  EXPECT_EQ(
      names_in(manifest_from_json(manifest_text(1, {"a", "momentum/a", "variation/a"}))),
      (std::vector<std::string>{"a = a", "exp_avg/a = momentum/a", "exp_avg_sq/a = variation/a"}))
      << "Adam";
  EXPECT_EQ(names_in(manifest_from_json(manifest_text(1, {"a", "momentum/a"}))),
            (std::vector<std::string>{"a = a", "momentum_buffer/a = momentum/a"}))
      << "SGD";
  EXPECT_EQ(names_in(manifest_from_json(manifest_text(2, {"a", "momentum/a"}))),
            (std::vector<std::string>{"a = a", "momentum/a = momentum/a"}))
      << "of today";
}

TEST(Manifest, RefusesVersionsThatItDoesNotKnow) {
  for (const int version : {0, 4}) {
    try {
      manifest_from_json(manifest_text(version, {}));
      FAIL() << "version " << version << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("its manifest cannot be used: it has version {}, and this program "
                            "reads versions 1 to 3",
                            version));
    }
  }
}

TEST(Manifest, OfAnEarlierVersionHasNoNamesOfClasses) {
  std::string text = to_json(Manifest{});
  const std::string field = " \"classes\": [],\n";
  ASSERT_NE(text.find(field), std::string::npos) << text;
  text.erase(text.find(field), field.size());
  EXPECT_EQ(manifest_from_json(text).classes, std::vector<std::string>{});
}

TEST(ShareOut, GivesEachWriterAboutAsMuch) {
  EXPECT_EQ(share_out({5, 1, 3, 1}, 2), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(share_out({}, 3), std::vector<int>{});
  EXPECT_EQ(share_out({7}, 1), std::vector<int>{0});
}

bool is_whole(const std::string& folder) {
  try {
    Checkpoint(folder).check_files();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Checkpoint, NoticesAnyFlippedByteAndAnyMissingEnd) {
  if (world().size() > 1) GTEST_SKIP() << "one rank is enough";
  const Graph graph = tiny_model();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training training(graph, Layout(1, {Grid{}}), adam(at::kFloat));
  save_checkpoint(folder, training.trainer, {}, world());
  const std::string path = folder.checkpoint(0);
  ASSERT_TRUE(is_whole(path));
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string whole = read_text(entry.path());
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      std::ofstream(entry.path()) << damaged;
      ASSERT_FALSE(is_whole(path)) << entry.path() << ", byte " << i;
      std::ofstream(entry.path()) << whole.substr(0, i);
      ASSERT_FALSE(is_whole(path)) << entry.path() << ", cut to " << i;
    }
    std::ofstream(entry.path()) << whole;
    std::filesystem::rename(entry.path(), scratch / "aside");
    EXPECT_FALSE(is_whole(path)) << entry.path();
    std::filesystem::rename(scratch / "aside", entry.path());
  }
  EXPECT_TRUE(is_whole(path));
}

TEST(CheckpointFolder, KeepsTheNewestAndForgetsWhatIsHalfWritten) {
  if (world().rank() != 0) return;
  const std::string path =
      std::filesystem::temp_directory_path() / ("mpi4dl-folder-" + std::to_string(getpid()));
  const CheckpointFolder folder(path);
  EXPECT_TRUE(folder.steps().empty());
  for (const int64_t step : {10, 200, 30}) {
    folder.begin(step);
    folder.publish(step);
  }
  folder.begin(40);  // and the run was killed
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{10, 30, 200}));
  folder.begin(50);
  EXPECT_FALSE(std::filesystem::exists(folder.partial(40)));
  folder.publish(50);
  folder.prune(50, 2);  // 200 is later, and not its own
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{30, 50, 200}));
  folder.begin(50);  // written anew
  folder.publish(50);
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{30, 50, 200}));
  std::filesystem::remove_all(path);
}

TEST(Checkpoint, FailsOnAllRanksTogether) {
  const Graph graph = tiny_model();
  Training training(graph, Layout(world().size(), {Grid{}}), adam(at::kFloat));
  std::string sentence;
  try {
    save_checkpoint(CheckpointFolder("/dev/null/run"), training.trainer, {}, world());
  } catch (const Error& error) {
    sentence = error.what();
  }
  EXPECT_NE(sentence.find("cannot make the folder '/dev/null/run'"), std::string::npos) << sentence;
}

TEST(Weights, TravelFromTrainingToTrainingThroughEveryKindOfFile) {
  const Graph graph = small_model();
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  const std::vector<Layout> all = layouts();
  Training training(graph, all.back(), adam(at::kFloat));
  training.step();
  save_checkpoint(folder, training.trainer, {}, world());
  const Checkpoint checkpoint(folder.checkpoint(1));
  if (world().rank() == 0) {
    TensorMap weights;
    for (const auto& [name, info] : checkpoint.tensors())
      if (is_weight(name)) weights[name] = checkpoint.read(name);
    write_torch_file(scratch / "weights.pt", weights);
    write_safetensors(scratch / "weights.safetensors", weights);
  }
  barrier(world());
  for (const char* path : {"run", "weights.pt", "weights.safetensors"}) {
    Training other(graph, all.front(), adam(at::kDouble));
    load_weights(scratch / path, {.name = "small", .graph = small_model()}, other.trainer, world());
    EXPECT_EQ(other.trainer.steps(), 0);
    for (const auto& [stage, state] : other.trainer.state())
      for (const auto& [name, values] : state) {
        if (!is_weight(name)) continue;
        EXPECT_TRUE(at::equal(values.cpu(), checkpoint.read(name).to(at::kDouble)));
      }
  }
}

/// PyTorch allows it, in the key of a ModuleDict.
TEST(Weights, MayHaveNamesWithSlashes) {
  Graph graph({.channels = 1, .space = {12, 12}});
  graph.begin_cell("enc/first");
  Value x = graph.add("conv", Convolution{.out_channels = 2, .kernel = {1, 1}, .bias = false},
                      {graph.input()});
  x = graph.add("pool", GlobalAvgPool{}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = 3, .bias = false}, {x}));
  const Layout layout(world().size(), {Grid{}});
  const Scratch scratch;
  const CheckpointFolder folder(scratch / "run");
  Training training(graph, layout, adam(at::kFloat));
  training.step();
  save_checkpoint(folder, training.trainer, {}, world());
  const Checkpoint saved(folder.checkpoint(1));
  TrainerOptions elsewhere = adam(at::kFloat);
  elsewhere.seed = 7;
  Training other(graph, layout, elsewhere);
  load_weights(scratch / "run", {.name = "small", .graph = graph}, other.trainer, world());
  const TensorMap exported = all_weights(saved);
  EXPECT_EQ(exported.size(), 2U);
  for (const auto& [name, values] : other.trainer.parameters().at(0)->trained()) {
    EXPECT_TRUE(at::equal(values.cpu(), saved.read(name))) << name;
    EXPECT_TRUE(exported.contains(name)) << name;
  }
}

}  // namespace
}  // namespace mpi4dl
