// Small nets of PyTorch that are imported and trained for three steps, on tiles and stages of these
// ranks, have the parameters that PyTorch's own optimizers give them.
#include <gtest/gtest.h>

#include "support/import_files.hpp"
#include "support/imported_step.hpp"
#include "support/imported_training.hpp"
#include "support/world.hpp"

namespace mpi4dl {
namespace {

constexpr double kTolerance = 1e-9;

struct Case {
  std::string net, optimizer;
};

/// Puts four tiles before the last rank where there are five, and only tiles elsewhere.
std::vector<Grid> stages(int ranks) {
  if (ranks == 5) return {make_grid("square", 4), Grid{}};
  return {make_grid("horizontal", ranks)};
}

class ThreeSteps : public ::testing::TestWithParam<Case> {};

TEST_P(ThreeSteps, GiveTheParametersOfPyTorch) {
  const auto& [net, optimizer] = GetParam();
  const SafetensorsFile expected(import_file(net + ".trained.safetensors"));
  const ImportedModel model =
      import_model(import_file(net + ".pt2"), {.image = testing::image_of(expected)});
  const Comparison found = testing::compare_training(model, stages(testing::world().size()),
                                                     optimizer, expected, testing::world());
  EXPECT_LE(found.max_relative_error, kTolerance) << found.worst;
}

INSTANTIATE_TEST_SUITE_P(Nets, ThreeSteps,
                         ::testing::Values(Case{"residual", "sgd"}, Case{"residual", "adamw"},
                                           Case{"squeeze_excite", "sgd"},
                                           Case{"squeeze_excite", "adamw"}, Case{"tied", "sgd"},
                                           Case{"tied", "adamw"}, Case{"unet", "sgd"},
                                           Case{"unet", "adamw"}),
                         [](const auto& info) {
                           return info.param.net + '_' + info.param.optimizer;
                         });

}  // namespace
}  // namespace mpi4dl
