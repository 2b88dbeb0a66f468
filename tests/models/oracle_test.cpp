// The models as graphs, on one rank, give what the same models give in plain torch::nn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "data/noise.hpp"
#include "models/registry.hpp"
#include "support/oracle/amoebanet.hpp"
#include "support/oracle/resnet.hpp"
#include "support/world.hpp"
#include "train/comparison.hpp"
#include "train/loss.hpp"

namespace mpi4dl {
namespace {

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 7;
constexpr int64_t kBatch = 2;

using Tensors = std::map<std::string, at::Tensor>;

std::vector<std::string> names(const Tensors& tensors) {
  std::vector<std::string> all;
  for (const auto& [name, values] : tensors) all.push_back(name);
  return all;
}

/// What both are given.
struct Question {
  at::Tensor images, labels;
  Tensors weights;
};

struct Answer {
  Question question;
  StepResult step;
};

/// One step of our graph on one rank, and what it was given.
Answer ours(const Graph& graph) {
  const StagePlan plan(graph, {}, kBatch, {});
  const StageRunner runner(plan, testing::world(), BatchNormScope::global);
  Parameters parameters(graph, plan.nodes(), at::kDouble, kSeed);
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[0];
  const at::Tensor images = noise_pixels(box, box.shape(), kSeed, at::kDouble);
  const at::Tensor labels = noise_labels(box[0], graph.node(output).shape.channels, kSeed);

  Answer answer{.question = {images.clone(), labels, {}}, .step = {}};
  for (const auto& [name, values] : parameters.trainable())
    answer.question.weights[name] = values.clone();
  StageRunner::Batch batch(runner, parameters, runner.context(/*training=*/true, kSeed));
  const Patch logits = batch.forward({{image, {box, images}}}).at(output);
  const Loss loss = cross_entropy(logits.data, labels, kBatch);
  batch.backward({{output, {logits.box, loss.gradient}}});
  answer.step.loss = loss.sum;
  answer.step.logits = logits.data;
  answer.step.gradients = parameters.gradients();
  answer.step.statistics = parameters.statistics();
  return answer;
}

/// The same step in the oracle.
template <typename Oracle>
StepResult theirs(Oracle model, const Question& question) {
  model->to(torch::kDouble);
  model->train();
  const auto parameters = model->named_parameters();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, values] : question.weights) parameters[name].copy_(values);
  }
  const at::Tensor logits = model->forward(question.images.contiguous());
  const at::Tensor loss = torch::nn::functional::cross_entropy(logits, question.labels);
  loss.backward();
  StepResult step;
  step.loss = loss.template item<double>();
  step.logits = logits.detach();
  for (const auto& parameter : parameters)
    step.gradients[parameter.key()] = parameter.value().grad();
  for (const auto& buffer : model->named_buffers())
    if (buffer.value().dim() > 0)  // not the number of batches
      step.statistics[buffer.key()] = buffer.value();
  return step;
}

template <typename Oracle>
void expect_equal(const Graph& graph, const Oracle& oracle) {
  const Answer mine = ours(graph);
  Tensors weights;
  for (const auto& parameter : oracle->named_parameters())
    weights[parameter.key()] = parameter.value();
  ASSERT_EQ(names(mine.question.weights), names(weights));
  const StepResult expected = theirs(oracle, mine.question);
  ASSERT_EQ(names(mine.step.gradients), names(expected.gradients));
  ASSERT_EQ(names(mine.step.statistics), names(expected.statistics));
  EXPECT_NEAR(mine.step.loss, expected.loss, kTolerance * expected.loss);
  const Comparison comparison = compare(mine.step, expected);
  EXPECT_LT(comparison.max_relative_error, kTolerance) << comparison.worst;
  ::testing::Test::RecordProperty("max_relative_error",
                                  fmt::format("{:.1e}", comparison.max_relative_error));
  fmt::print("  {:.1e}\n", comparison.max_relative_error);
}

using Size = std::pair<int64_t, int64_t>;
const std::vector<Size> kSizes{{64, 64}, {96, 64}, {100, 100}, {127, 127}};

void expect_resnets_equal(int version, int depth, const std::vector<Size>& sizes) {
  for (const auto& [height, width] : sizes)
    for (const bool global_pool_head : {false, true}) {
      SCOPED_TRACE(fmt::format("depth {}, image {}x{}, global pool head {}", depth, height, width,
                               global_pool_head));
      const ModelOptions options{.name = "resnet",
                                 .image = {height, width},
                                 .resnet_version = version,
                                 .depth = depth,
                                 .global_pool_head = global_pool_head};
      expect_equal(build_model(options),
                   oracle::ResNet(oracle::ResNetOptions{.version = version,
                                                        .depth = depth,
                                                        .height = height,
                                                        .width = width,
                                                        .global_pool_head = global_pool_head}));
    }
}

void expect_amoebanets_equal(int layers, int64_t filters, const std::vector<Size>& sizes) {
  for (const auto& [height, width] : sizes) {
    SCOPED_TRACE(fmt::format("({}, {}), image {}x{}", layers, filters, height, width));
    const ModelOptions options{.name = "amoebanet",
                               .image = {height, width},
                               .num_layers = layers,
                               .num_filters = filters};
    expect_equal(build_model(options), oracle::AmoebaNet(oracle::AmoebaNetOptions{
                                           .num_layers = layers, .num_filters = filters}));
  }
}

TEST(Oracle, ResNetVersion1) {
  expect_resnets_equal(1, 8, kSizes);
  expect_resnets_equal(1, 20, kSizes);
}

TEST(Oracle, ResNetVersion2) {
  expect_resnets_equal(2, 11, kSizes);
  expect_resnets_equal(2, 29, kSizes);
}

TEST(Oracle, AmoebaNet) {
  expect_amoebanets_equal(3, 32, kSizes);
  expect_amoebanets_equal(6, 64, kSizes);
}

}  // namespace
}  // namespace mpi4dl
