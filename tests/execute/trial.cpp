#include "execute/trial.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/random.hpp"
#include "comm/collectives.hpp"
#include "execute/stage_executor.hpp"
#include "support/describe.hpp"
#include "support/noise.hpp"
#include "support/whole_graph.hpp"
#include "support/whole_reduction.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

constexpr uint64_t kGradientKey = 1, kParameterKey = 2;

/// Randomises parameters: norms start with weights of one and shifts of zero, which would hide that
/// they are forgotten.
void randomise(const std::map<std::string, at::Tensor>& tensors, uint64_t seed) {
  uint64_t key = combine_keys(seed, kParameterKey);
  for (const auto& [name, values] : tensors) {
    const std::vector<int64_t> shape{values.numel()};
    const at::Tensor noise = noise_pixels(Box::whole(shape), shape, ++key, at::kDouble);
    values.copy_(noise.view(values.sizes()).mul(0.5).add(values.dim() == 1 ? 1.0 : 0.0));
  }
}

Parameters random_parameters(const Trial& trial, const StagePlan& plan) {
  Parameters parameters(trial.graph, plan.nodes(), trial.type, trial.seed,
                        world().context().backend);
  randomise(parameters.trained(), trial.seed);
  randomise(parameters.statistics(), trial.seed + 1);
  randomise(parameters.frozen(), trial.seed + 2);
  parameters.compute_weights();
  return parameters;
}

/// Returns the sum of everybody's parts, as a whole tensor on every rank.
at::Tensor summed(const std::vector<int64_t>& shape, const Patch& mine, const Communicator& stage) {
  const Patch whole{Box::whole(shape), at::zeros(shape, at::kDouble)};
  if (!mine.box.empty()) whole.view(mine.box).copy_(mine.data);
  at::Tensor sum = whole.data;
  all_reduce(sum, stage);
  return sum;
}

void expect_close(const std::string& name, const at::Tensor& result, const at::Tensor& expected,
                  double tolerance) {
  ASSERT_EQ(result.sizes(), expected.sizes()) << name;
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  const at::Tensor apart = (result.to(at::kCPU, at::kDouble) - expected).abs().max();
  EXPECT_LE(apart.item<double>(), tolerance * scale) << name;
}

void expect_close(const std::map<std::string, at::Tensor>& result,
                  const std::map<std::string, at::Tensor>& expected, double tolerance) {
  ASSERT_EQ(result.size(), expected.size());
  for (const auto& [name, values] : expected)
    expect_close(name, result.at(name), values, tolerance);
}

}  // namespace

at::Tensor Trial::pixels(const Box& box) const {
  at::Tensor noise = noise_pixels(box, shape_of(graph.input().id), seed, at::kDouble);
  if (ties) noise = noise.mul(1.5).round();
  return noise.to(type).contiguous(memory_format(box));
}

at::Tensor Trial::output_gradient(const Box& box) const {
  const uint64_t key = combine_keys(seed, kGradientKey);
  return noise_pixels(box, shape_of(graph.output()), key, type).contiguous(memory_format(box));
}

std::vector<int64_t> Trial::shape_of(int node) const {
  const Shape& shape = graph.node(node).shape;
  std::vector<int64_t> full{batch, shape.channels};
  full.insert(full.end(), shape.space.begin(), shape.space.end());
  return full;
}

std::string describe(const Trial& trial) {
  return fmt::format("seed {}, grid {}x{}x{}, batch {}, {}, {}\n{}", trial.seed, trial.grid.batch,
                     trial.grid.rows, trial.grid.cols, trial.batch, describe(trial.halo),
                     trial.training ? "training" : "evaluation", describe(trial.graph));
}

Outcome run_on_tiles(const Trial& trial, const Communicator& stage) {
  const StagePlan plan(trial.graph, trial.grid, trial.batch, trial.halo);
  const StageExecutor executor(plan, stage, BatchNormScope::global);
  Parameters parameters = random_parameters(trial, plan);
  StageExecutor::Batch batch(executor, parameters, executor.context(trial.training, trial.seed));
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[stage.rank()];
  const Patch result = batch.forward({{image, {box, on_device(trial.pixels(box))}}}).at(output);
  const Patch gradient =
      batch.backward({{output, {result.box, on_device(trial.output_gradient(result.box))}}})
          .at(image);
  reduce(parameters, stage);
  parameters.update_statistics();
  return {summed(trial.shape_of(output), result, stage),
          summed(trial.shape_of(image), gradient, stage), parameters.gradients(),
          parameters.statistics()};
}

Outcome run_whole(const Trial& trial) {
  const StagePlan plan(trial.graph, {}, trial.batch, {});
  const Parameters parameters = random_parameters(trial, plan);
  const auto leaf = [](const at::Tensor& values) {
    return values.to(at::kCPU, at::kDouble).clone(at::MemoryFormat::Contiguous).requires_grad_();
  };
  Outcome outcome;
  std::map<std::string, at::Tensor> all;
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves{leaf(trial.pixels(Box::whole(trial.shape_of(0))))};
  for (const auto& [name, values] : parameters.trained()) {
    names.push_back(name);
    leaves.push_back(all[name] = leaf(values));
  }
  for (const auto& [name, values] : parameters.frozen())
    all[name] = values.to(at::kCPU, at::kDouble);
  for (const auto& [name, values] : parameters.statistics())
    all[name] = outcome.statistics[name] = values.to(at::kCPU, at::kDouble).clone();

  const at::Tensor output = evaluate_whole(trial.graph, leaves[0], all, trial.training);
  const Box whole = Box::whole(trial.shape_of(trial.graph.output()));
  const auto gradients = torch::autograd::grad(
      {output}, leaves, {trial.output_gradient(whole).to(at::kDouble).contiguous()});
  outcome.output = output.detach();
  outcome.input_gradient = gradients[0];
  for (size_t i = 0; i < names.size(); ++i) outcome.gradients[names[i]] = gradients[i + 1];
  return outcome;
}

void expect_equal(const Outcome& result, const Outcome& expected, double tolerance) {
  expect_close("output", result.output, expected.output, tolerance);
  expect_close("input gradient", result.input_gradient, expected.input_gradient, tolerance);
  expect_close(result.gradients, expected.gradients, tolerance);
  expect_close(result.statistics, expected.statistics, tolerance);
}

}  // namespace mpi4dl::testing
