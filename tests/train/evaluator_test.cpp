// Random networks x random layouts x any number of images: the evaluation of many ranks is what
// plain libtorch says of whole images, one process, with running statistics and without dropout.
#include "train/evaluator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/synthetic.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"
#include "support/agreement.hpp"
#include "support/describe.hpp"
#include "support/random_graph.hpp"
#include "support/random_layout.hpp"
#include "support/whole_graph.hpp"
#include "verify/verification.hpp"

namespace mpi4dl::testing {
namespace {

constexpr double kTolerance = 1e-9;

struct Case {
  Graph graph;
  Layout layout;
  EvaluatorOptions options;
  int64_t images;
  uint64_t seed;
};

/// Sets running statistics that belong to their names alone.
void set_statistics(const Parameters& parameters) {
  for (const auto& [name, values] : parameters.statistics())
    for (int64_t i = 0; i < values.numel(); ++i)
      values.view({-1})[i] = 0.5 + uniform(key_of(name), static_cast<uint64_t>(i));
}

StageParameters parameters_of(const Case& c, const ProcessGroups& groups) {
  StageParameters all = make_parameters(c.graph, c.options.cells, groups, c.options.type, c.seed);
  for (const auto& [stage, parameters] : all) set_statistics(*parameters);
  return all;
}

RandomImages images_of(const Case& c) {
  return RandomImages({.size = c.images,
                       .classes = c.graph.node(c.graph.output()).shape.channels,
                       .image = c.graph.shape(c.graph.input()),
                       .seed = c.seed});
}

Predictions evaluate(const Case& c) {
  const ProcessGroups groups(c.layout, world());
  const StageParameters parameters = parameters_of(c, groups);
  Evaluator evaluator(c.graph, c.layout, groups, parameters, c.options, c.images, world());
  const RandomImages data = images_of(c);
  SampleBatch images = all_samples(data);
  return evaluator.run(images);
}

/// Returns none where libtorch refuses: it takes no empty batch, and pools no image below its
/// kernel's size.
std::optional<at::Tensor> whole_logits(const Case& c) try {
  std::vector<int> nodes(c.graph.nodes().size() - 1);
  std::iota(nodes.begin(), nodes.end(), 1);
  const Parameters parameters(c.graph, nodes, c.options.type, c.seed,
                              make_backend("cpu", at::kCPU));
  set_statistics(parameters);
  std::map<std::string, at::Tensor> all = parameters.trained();
  all.merge(parameters.statistics());
  all.merge(parameters.frozen());
  std::vector<int64_t> shape{c.images, c.graph.shape(c.graph.input()).channels};
  for (const int64_t extent : c.graph.shape(c.graph.input()).space) shape.push_back(extent);
  const RandomImages data = images_of(c);
  SampleBatch images = all_samples(data);
  MicroBatch places(c.images);
  std::iota(places.begin(), places.end(), 0);
  const at::Tensor pixels = read_box(images, places, Box::whole(shape), at::kDouble);
  return evaluate_whole(c.graph, pixels.contiguous(), all, /*training=*/false);
} catch (const c10::Error&) {
  return std::nullopt;
}

Case draw(Dice& dice, uint64_t seed) {
  const int replicas = dice.chance(0.4) ? draw_divisor(dice, world().size()) : 1;
  const auto stages = draw_stages(dice, world().size() / replicas);
  Case c{.graph = random_graph(dice, draw_image(dice, stages)),
         .layout = Layout(world().size(), stages, /*gems=*/dice.chance(0.3)),
         .options = {.type = c10::ScalarType::Double, .batch = dice.pick(1, 5)},
         .images = dice.pick(0, 11),
         .seed = seed};
  const bool fused = dice.chance(0.5);
  c.options.halo = {fused, fused ? static_cast<int>(dice.pick(1, 4)) : 1};
  c.options.cells =
      draw_balance(dice, static_cast<int>(c.graph.cells().size()), static_cast<int>(stages.size()));
  const PipelinePlan fits(c.graph, stages, c.options.cells, 1, c.options.halo);
  return c;
}

std::string summary(const Case& c) {
  std::string stages;
  for (const Grid& grid : c.layout.stages()) stages += fmt::format(" {}", to_string(grid));
  return fmt::format("seed {}, stages{}, {} replicas, {} images by {}, {}\n{}", c.seed, stages,
                     c.layout.replicas(), c.images, c.options.batch, describe(c.options.halo),
                     describe(c.graph));
}

TEST(Evaluator, EqualsPlainLibtorchOnWholeImages) {
  int compared = 0;
  for (const uint64_t seed : seeds(40)) {
    Dice dice(combine_keys(seed, world().size()));
    const Case c = draw_until_it_fits([&] { return draw(dice, seed); });
    session().doing(summary(c));
    SCOPED_TRACE(summary(c));
    const at::Tensor found = evaluate(c).logits;
    ASSERT_EQ(found.size(0), c.images);
    const std::optional<at::Tensor> expected = whole_logits(c);
    if (!expected) continue;
    ++compared;
    EXPECT_LE((found - *expected).norm().item<double>(),
              kTolerance * std::max(1.0, expected->norm().item<double>()));
    if (failed_anywhere()) return;
  }
  EXPECT_GE(compared, 25);
}

Case resnet(int depth, const std::vector<Grid>& stages, int64_t images) {
  Case c{.graph = build_model({.name = "resnet", .image = {64, 64}, .depth = depth}),
         .layout = Layout(world().size(), stages),
         .options = {},
         .images = images,
         .seed = 1};
  c.options.cells = balance_cells(c.graph, stages);
  return c;
}

TEST(Evaluator, KeepsNothingForBackward) {
  const std::vector<Grid> stages{make_grid("square", world().size())};
  const Case shallow = resnet(20, stages, 1), deep = resnet(56, stages, 1);
  const auto of_shallow = static_cast<double>(evaluate(shallow).peak_bytes);
  const auto of_deep = static_cast<double>(evaluate(deep).peak_bytes);
  // Nearly three times as many layers; what was sent lives until its reader has it, who may be
  // late.
  EXPECT_LE(of_deep, 1.2 * of_shallow);
  VerificationOptions training{.batch = {.batch = 1}};
  training.trainer.type = deep.options.type;
  training.trainer.cells = deep.options.cells;
  const auto trained =
      static_cast<double>(train_in_layout(deep.graph, deep.layout, training, world()).peak_bytes);
  EXPECT_LE(3 * of_deep, trained) << "evaluation " << of_deep << ", training " << trained;
}

/// Counts what this rank's stage makes of one image for others, as often as they may lag behind,
/// and what it expects from others for the next image. An MPI that reads the memory of devices has
/// its messages there, too.
double bytes_in_transit(const Case& c) {
  const int rank = world().rank();
  const PipelinePlan pipeline(c.graph, c.layout.stages(), c.options.cells, 1, c.options.halo);
  const StagePlan& plan = pipeline.stages()[rank];
  int64_t elements = 0;
  for (const int id : plan.outputs())
    elements += plan.value(id).owned[0].elements() * (world().size() - rank);
  for (const int id : plan.inputs()) elements += plan.value(id).computed[0].elements();
  if (world().context().device_aware) elements *= 2;
  return static_cast<double>(elements * static_cast<int64_t>(sizeof(float)));
}

/// The last stage has nearly all the work: others hold what the stages between can take, no more.
TEST(Evaluator, FastStagesWaitForSlowOnes) {
  Case c = resnet(20, std::vector<Grid>(world().size()), 1);
  const int stages = world().size();
  for (int stage = 0; stage < stages; ++stage) c.options.cells[stage] = {stage, stage + 1};
  c.options.cells.back().last = static_cast<int>(c.graph.cells().size());
  const auto one = static_cast<double>(evaluate(c).peak_bytes);
  c.images = 30;
  EXPECT_LE(static_cast<double>(evaluate(c).peak_bytes), 1.1 * (one + bytes_in_transit(c)));
}

TEST(Evaluator, TellsClassesOnly) {
  Graph graph({3, {16, 12}});
  graph.begin_cell("maps");
  graph.set_output(graph.add("relu", Relu{}, {graph.input()}));
  try {
    check_classifier(graph);
    ADD_FAILURE() << "nothing was noticed";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "the output of this model is a map of 3x16x12, and segmentation cannot be trained "
                 "or evaluated yet; verify can check its layouts");
  }
}

TEST(Evaluator, SaysWhichImageHasNoFiniteOutput) {
  const Case c = resnet(11, {make_grid("square", world().size())}, 3);
  const ProcessGroups groups(c.layout, world());
  const StageParameters parameters = parameters_of(c, groups);
  parameters.begin()->second->statistics().begin()->second.fill_(NAN);
  Evaluator evaluator(c.graph, c.layout, groups, parameters, c.options, c.images, world());
  const RandomImages data = images_of(c);
  SampleBatch images = all_samples(data);
  try {
    evaluator.run(images);
    ADD_FAILURE() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the model's output for image 1 of 3 is not finite");
  }
}

}  // namespace
}  // namespace mpi4dl::testing
