// The models as graphs, on one rank, give what the same models give in plain torch::nn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "baseline/amoebanet.hpp"
#include "baseline/resnet.hpp"
#include "models/registry.hpp"
#include "support/noise.hpp"
#include "support/world.hpp"
#include "task/loss.hpp"
#include "verify/verification.hpp"

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

/// Holds what both are given.
struct Question {
  at::Tensor images, labels;
  Tensors weights;
};

struct Answer {
  Question question;
  StepResult step;
};

/// Takes one step of our graph on one rank, and returns what it was given too.
Answer ours(const Graph& graph) {
  const StagePlan plan(graph, {}, kBatch, {});
  const StageExecutor executor(plan, testing::world(), BatchNormScope::global);
  Parameters parameters(graph, plan.nodes(), at::kDouble, kSeed,
                        testing::world().context().backend);
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[0];
  const at::Tensor images = testing::noise_pixels(box, box.shape(), kSeed, at::kDouble);
  const at::Tensor labels = testing::noise_labels(kBatch, graph.node(output).shape.channels, kSeed);

  Answer answer{.question = {images.clone(), labels, {}}, .step = {}};
  for (const auto& [name, values] : parameters.trained())
    answer.question.weights[name] = values.clone();
  StageExecutor::Batch batch(executor, parameters, executor.context(/*training=*/true, kSeed));
  const Patch logits = batch.forward({{image, {box, images}}}).at(output);
  const Loss loss = cross_entropy(logits.data, labels, kBatch);
  batch.backward({{output, {logits.box, loss.gradient}}});
  answer.step.loss = loss.sum.item<double>();
  answer.step.logits = logits.data;
  answer.step.gradients = parameters.gradients();
  parameters.update_statistics();
  answer.step.statistics = parameters.statistics();
  return answer;
}

/// Takes the same step in the oracle.
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

/// Expects equal tensors: those whose norm is below `zero` count as zero, the others are held to
/// their own size.
void expect_close(const Tensors& result, const Tensors& expected, double zero) {
  ASSERT_EQ(names(result), names(expected));
  for (const auto& [name, values] : expected) {
    const double norm = values.norm().item<double>();
    const double apart = (result.at(name) - values).norm().item<double>();
    EXPECT_LE(apart, norm < zero ? zero : kTolerance * norm) << name;
  }
}

double total_norm(const Tensors& tensors) {
  double squares = 0;
  for (const auto& [name, values] : tensors) squares += values.square().sum().item<double>();
  return std::sqrt(squares);
}

template <typename Oracle>
void expect_equal(const Graph& graph, const Oracle& oracle) {
  const Answer mine = ours(graph);
  Tensors weights;
  for (const auto& parameter : oracle->named_parameters())
    weights[parameter.key()] = parameter.value();
  ASSERT_EQ(names(mine.question.weights), names(weights));

  const StepResult expected = theirs(oracle, mine.question);
  EXPECT_NEAR(mine.step.loss, expected.loss, kTolerance * expected.loss);
  expect_close({{"logits", mine.step.logits}}, {{"logits", expected.logits}}, 0);
  expect_close(mine.step.statistics, expected.statistics, 0);
  // A bias in front of a batch norm changes nothing: its gradient is zero but for rounding.
  expect_close(mine.step.gradients, expected.gradients, 1e-14 * total_norm(expected.gradients));
}

struct ResNetCase {
  int version, depth;
  int64_t height, width;
  bool global_pool_head;
};

class ResNetOracle : public ::testing::TestWithParam<ResNetCase> {};

TEST_P(ResNetOracle, GivesTheSameStep) {
  const ResNetCase c = GetParam();
  const ModelOptions options{.name = "resnet",
                             .image = {c.height, c.width},
                             .resnet_version = c.version,
                             .depth = c.depth,
                             .global_pool_head = c.global_pool_head};
  const baseline::ResNetOptions same{.version = c.version,
                                     .depth = c.depth,
                                     .height = c.height,
                                     .width = c.width,
                                     .global_pool_head = c.global_pool_head};
  expect_equal(build_model(options), baseline::ResNet(same));
}

INSTANTIATE_TEST_SUITE_P(
    Version1, ResNetOracle,
    ::testing::Values(ResNetCase{1, 8, 64, 64, false}, ResNetCase{1, 8, 96, 64, true},
                      ResNetCase{1, 8, 100, 100, true}, ResNetCase{1, 8, 127, 127, false},
                      ResNetCase{1, 20, 64, 64, true}, ResNetCase{1, 20, 96, 64, false}));
INSTANTIATE_TEST_SUITE_P(
    Version2, ResNetOracle,
    ::testing::Values(ResNetCase{2, 11, 64, 64, true}, ResNetCase{2, 11, 96, 64, false},
                      ResNetCase{2, 11, 100, 100, false}, ResNetCase{2, 11, 127, 127, true},
                      ResNetCase{2, 29, 64, 64, false}, ResNetCase{2, 29, 48, 64, true}));

struct AmoebaNetCase {
  int layers;
  int64_t filters;
  int64_t height, width;
};

class AmoebaNetOracle : public ::testing::TestWithParam<AmoebaNetCase> {};

TEST_P(AmoebaNetOracle, GivesTheSameStep) {
  const AmoebaNetCase c = GetParam();
  const ModelOptions options{.name = "amoebanet",
                             .image = {c.height, c.width},
                             .num_layers = c.layers,
                             .num_filters = c.filters};
  const baseline::AmoebaNetOptions same{.num_layers = c.layers, .num_filters = c.filters};
  expect_equal(build_model(options), baseline::AmoebaNet(same));
}

INSTANTIATE_TEST_SUITE_P(Small, AmoebaNetOracle,
                         ::testing::Values(AmoebaNetCase{3, 32, 64, 64},
                                           AmoebaNetCase{3, 32, 96, 64},
                                           AmoebaNetCase{3, 32, 100, 100},
                                           AmoebaNetCase{3, 32, 127, 127}));
INSTANTIATE_TEST_SUITE_P(Large, AmoebaNetOracle,
                         ::testing::Values(AmoebaNetCase{6, 64, 64, 64},
                                           AmoebaNetCase{6, 64, 96, 64},
                                           AmoebaNetCase{6, 64, 100, 100},
                                           AmoebaNetCase{6, 64, 127, 127}));

}  // namespace
}  // namespace mpi4dl
