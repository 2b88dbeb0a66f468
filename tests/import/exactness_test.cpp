// The small files of tests/data/import, imported and trained for a step on tiles of these ranks,
// give the output, loss, gradients and statistics that PyTorch computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/import_files.hpp"
#include "support/imported_step.hpp"
#include "support/world.hpp"

namespace mpi4dl {
namespace {

constexpr double kTolerance = 1e-9;

/// Returns what comes before the first dot.
std::string net_of(const std::string& file) {
  return file.substr(0, file.find('.'));
}

/// Lists the files that can be imported.
std::vector<std::string> files_ending(const std::string& ending) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(import_file("")))
    if (const std::string name = entry.path().filename(); name.ends_with(ending))
      if (name.find(".refused.") == std::string::npos) found.push_back(name);
  std::sort(found.begin(), found.end());
  return found;
}

void expect_exact(const std::string& file, const std::string& values) {
  const SafetensorsFile expected(import_file(values));
  const ImportedModel model =
      import_model(import_file(file), {.image = testing::image_of(expected)});
  const Grid grid = make_grid("square", testing::world().size());
  const Comparison found = testing::compare_with_pytorch(model, grid, expected, testing::world());
  EXPECT_LE(found.max_relative_error, kTolerance) << found.worst;
}

struct ReadableName {
  std::string operator()(const ::testing::TestParamInfo<std::string>& info) const {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
};

class AtItsSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtItsSize, AStepIsThatOfPyTorch) {
  expect_exact(GetParam(), net_of(GetParam()) + ".safetensors");
}

INSTANTIATE_TEST_SUITE_P(Files, AtItsSize, ::testing::ValuesIn(files_ending(".pt2")),
                         ReadableName());

class AtAnotherSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtAnotherSize, AStepIsThatOfPyTorch) {
  const std::string net = net_of(GetParam()), dynamic = net + ".dynamic.pt2";
  expect_exact(std::filesystem::exists(import_file(dynamic)) ? dynamic : net + ".pt2", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Files, AtAnotherSize,
                         ::testing::ValuesIn(files_ending(".other.safetensors")), ReadableName());

}  // namespace
}  // namespace mpi4dl
