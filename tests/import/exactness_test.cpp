// The small files of tests/data/import, imported and trained for a step on tiles of these ranks,
// give the output, loss, gradients and statistics that PyTorch computed.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/expected_step.hpp"
#include "support/import_files.hpp"

namespace mpi4dl {
namespace {

/// Lists the files that can be imported.
std::vector<std::string> files_ending(const std::string& ending) {
  return import_files([&](const std::string& name) {
    return name.ends_with(ending) && name.find(".refused.") == std::string::npos;
  });
}

class AtItsSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtItsSize, AStepIsThatOfPyTorch) {
  testing::expect_step_of_pytorch(GetParam(), net_of(GetParam()) + ".safetensors");
}

INSTANTIATE_TEST_SUITE_P(Files, AtItsSize, ::testing::ValuesIn(files_ending(".pt2")), NameOfFile());

class AtAnotherSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtAnotherSize, AStepIsThatOfPyTorch) {
  const std::string net = net_of(GetParam()), dynamic = net + ".dynamic.pt2";
  testing::expect_step_of_pytorch(
      std::filesystem::exists(import_file(dynamic)) ? dynamic : net + ".pt2", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Files, AtAnotherSize,
                         ::testing::ValuesIn(files_ending(".other.safetensors")), NameOfFile());

}  // namespace
}  // namespace mpi4dl
