// A step in bfloat16 on a device is as good as the one that our own kernels make of it: both are
// compared with float64.
#include <gtest/gtest.h>

#include <cmath>

#include "models/registry.hpp"
#include "support/world.hpp"
#include "verify/verification.hpp"

namespace mpi4dl::testing {
namespace {

VerificationOptions options_of(const Graph& graph, c10::ScalarType type) {
  VerificationOptions options{.batch = {.batch = 4}};
  options.trainer.type = type;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  return options;
}

/// Returns how far tensors are from the expected ones, relative to these, all of them together.
double error_of(const std::map<std::string, at::Tensor>& tensors,
                const std::map<std::string, at::Tensor>& expected) {
  double squares = 0, whole = 0;
  for (const auto& [name, values] : expected) {
    squares += (tensors.at(name) - values).square().sum().item<double>();
    whole += values.square().sum().item<double>();
  }
  return std::sqrt(squares / whole);
}

void expect_as_exact_as_our_kernels(const ModelOptions& model) {
  const Graph graph = build_model(model);
  const Communicator alone = *world().split(world().rank());
  const StepResult truth = train_alone(graph, options_of(graph, at::kDouble), alone);
  const StepResult kernels = train_alone(graph, options_of(graph, at::kBFloat16), alone);
  const Layout tiles(world().size(), {make_grid("square", world().size())});
  const StepResult here = train_in_layout(graph, tiles, options_of(graph, at::kBFloat16), world());

  constexpr double kRounding = 0x1p-8;  // of one product
  EXPECT_NEAR(here.loss, truth.loss, 2 * kRounding * truth.loss);
  const double error = error_of(here.gradients, truth.gradients);
  EXPECT_GT(error, kRounding / 4) << "this was not bfloat16";
  EXPECT_LE(error, 1.5 * error_of(kernels.gradients, truth.gradients));
  EXPECT_LE(error_of(here.statistics, truth.statistics), 2 * kRounding);
  EXPECT_LE(error_of(here.parameters, truth.parameters),
            1.5 * error_of(kernels.parameters, truth.parameters));
}

TEST(BFloat16, OfResNetIsAsExactAsOurKernels) {
  expect_as_exact_as_our_kernels(
      {.name = "resnet", .image = {32, 32}, .resnet_version = 1, .depth = 8});
}

TEST(BFloat16, OfAmoebaNetIsAsExactAsOurKernels) {
  expect_as_exact_as_our_kernels(
      {.name = "amoebanet", .image = {64, 64}, .num_layers = 3, .num_filters = 16});
}

}  // namespace
}  // namespace mpi4dl::testing
