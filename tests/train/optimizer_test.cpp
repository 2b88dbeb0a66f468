#include "train/optimizer.hpp"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "backend/cpu/optimizer_update.hpp"
#include "base/error.hpp"
#include "base/expects.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

/// Makes an odd number of parameters, more than a thread updates at once.
Graph small_graph() {
  Graph graph({.channels = 2, .space = {6, 6}});
  graph.begin_cell("only");
  Value x = graph.add("conv", Convolution{.out_channels = 3, .kernel = {3, 3}}, {graph.input()});
  x = graph.add("flatten", Flatten{}, {x});
  x = graph.add("linear", Linear{.out_features = 2003}, {x});
  graph.set_output(x);
  return graph;
}

std::vector<int> all_nodes(const Graph& graph) {
  std::vector<int> nodes;
  for (int id = 1; id < static_cast<int>(graph.nodes().size()); ++id) nodes.push_back(id);
  return nodes;
}

/// Takes five steps with random gradients, ours and libtorch's; returns the largest difference.
template <typename Theirs>
double largest_difference(const OptimizerOptions& options, const Theirs& make_theirs) {
  const Graph graph = small_graph();
  Parameters parameters(graph, all_nodes(graph), at::kDouble, 1, world().context().backend);
  Optimizer ours(parameters, options);
  const ShardedUpdate update(parameters, world());
  std::vector<at::Tensor> copies;
  for (const auto& [name, value] : parameters.trained())
    copies.push_back(value.clone().requires_grad_());
  auto theirs = make_theirs(copies);
  at::manual_seed(1);
  for (int step = 0; step < 5; ++step) {
    size_t i = 0;
    for (const auto& [name, gradient] : parameters.gradients()) {
      gradient.copy_(at::randn(gradient.sizes(), at::kDouble));
      copies[i++].mutable_grad() = gradient * 0.5;
    }
    ours.step(0.1, /*scale=*/0.5, update);
    theirs.step();
  }
  double apart = 0;
  size_t i = 0;
  for (const auto& [name, value] : parameters.trained())
    apart = std::max(apart, (value - copies[i++]).abs().max().template item<double>());
  return apart;
}

TEST(Optimizer, IsSgdOfLibtorch) {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.1})
      EXPECT_LT(largest_difference(
                    {.momentum = momentum, .weight_decay = decay},
                    [&](const auto& copies) {
                      return torch::optim::SGD(
                          copies,
                          torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(decay));
                    }),
                1e-14);
}

TEST(Optimizer, IsAdamOfLibtorch) {
  for (const double decay : {0.0, 0.1})
    EXPECT_LT(largest_difference({.kind = OptimizerOptions::Kind::adam, .weight_decay = decay},
                                 [&](const auto& copies) {
                                   return torch::optim::Adam(
                                       copies, torch::optim::AdamOptions(0.1).weight_decay(decay));
                                 }),
              1e-12);
}

TEST(Optimizer, IsAdamWOfLibtorch) {
  EXPECT_LT(largest_difference({.kind = OptimizerOptions::Kind::adamw, .weight_decay = 0.1},
                               [&](const auto& copies) {
                                 return torch::optim::AdamW(
                                     copies, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
                               }),
            1e-12);
}

/// Gives each parameter a group of its own, in the order of their names: the bias and the weight of
/// the convolution, and those of the linear layer.
template <typename Options>
std::vector<torch::optim::OptimizerParamGroup> groups_of(const std::vector<at::Tensor>& copies,
                                                         const Options& usual) {
  const std::vector<double> rates{0.1, 0.05, 0.3, 0.1}, decays{0, 0.1, 0.02, 0.1};
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (size_t i = 0; i < copies.size(); ++i) {
    auto options = std::make_unique<Options>(usual);
    options->lr(rates[i]);
    options->weight_decay(decays[i]);
    groups.emplace_back(std::vector{copies[i]}, std::move(options));
  }
  return groups;
}

OptimizerOptions in_groups(OptimizerOptions::Kind kind) {
  return {.kind = kind,
          .weight_decay = 0.1,
          .rate_factors = {{"only.conv.weight", 0.5}, {"only.linear.bias", 3}},
          .weight_decays = {{"only.conv.bias", 0}, {"only.linear.bias", 0.02}}};
}

TEST(Optimizer, HasTheParameterGroupsOfLibtorch) {
  using Kind = OptimizerOptions::Kind;
  namespace optim = torch::optim;
  EXPECT_LT(largest_difference(in_groups(Kind::sgd),
                               [](const auto& copies) {
                                 return optim::SGD(
                                     groups_of(copies, optim::SGDOptions(0.1).momentum(0.9)),
                                     optim::SGDOptions(0.1));
                               }),
            1e-14);
  EXPECT_LT(largest_difference(in_groups(Kind::adam),
                               [](const auto& copies) {
                                 return optim::Adam(groups_of(copies, optim::AdamOptions(0.1)));
                               }),
            1e-12);
  EXPECT_LT(largest_difference(in_groups(Kind::adamw),
                               [](const auto& copies) {
                                 return optim::AdamW(groups_of(copies, optim::AdamWOptions(0.1)));
                               }),
            1e-12);
}

TEST(Optimizer, KeepsTheDigitsThatBfloat16Lacks) {
  const Graph graph = small_graph();
  Parameters parameters(graph, all_nodes(graph), at::kBFloat16, 1, world().context().backend);
  Optimizer optimizer(parameters, {.momentum = 0});
  const auto first = parameters.trained().begin()->second;
  first.fill_(1);
  Optimizer fresh(parameters, {.momentum = 0});
  const ShardedUpdate update(parameters, world());
  for (const auto& [name, gradient] : parameters.gradients()) gradient.fill_(1);
  for (int step = 0; step < 100; ++step)
    fresh.step(1e-3, 1, update);  // each less than half a digit of 1
  EXPECT_NEAR(first.to(at::kFloat).max().item<double>(), 0.9, 0.005);
}

TEST(Optimizer, IsPromisedAGradientForEachValue) {
  if (!kChecked) GTEST_SKIP() << "promises are checked in Debug and sanitizer builds";
  const at::Tensor values = at::zeros({5}), few = at::zeros({4});
  const at::Tensor apart = at::zeros({10}).slice(0, 0, 10, 2);  // not dense
  EXPECT_NO_THROW(cpu::sgd({}, values, values, {}));
  for (const at::Tensor& gradients : {few, apart, values.to(at::kDouble)})
    EXPECT_THROW(cpu::sgd({}, values, gradients, {}), Error);
  EXPECT_THROW(cpu::sgd({}, values, values, few), Error);
  EXPECT_THROW(cpu::adam({}, values, values, values, few), Error);
}

}  // namespace
}  // namespace mpi4dl::testing
