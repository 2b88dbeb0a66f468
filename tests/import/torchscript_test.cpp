// TorchScript files of tests/data/import, traces and scripts, imported and trained for a step, give
// what PyTorch computed, at their size and at another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "support/expected_step.hpp"
#include "support/import_files.hpp"
#include "support/imported_step.hpp"

namespace mpi4dl {
namespace {

bool is_there(const std::string& file) {
  return std::filesystem::exists(import_file(file));
}

/// Lists the files of which values of this ending are there.
std::vector<std::string> files_with(const std::string& values) {
  return import_files([&](const std::string& name) {
    return name.ends_with(".pt") && is_there(net_of(name) + values);
  });
}

class AtItsSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtItsSize, AStepIsThatOfPyTorch) {
  testing::expect_step_of_pytorch(GetParam(), net_of(GetParam()) + ".safetensors");
}

INSTANTIATE_TEST_SUITE_P(Files, AtItsSize, ::testing::ValuesIn(files_with(".safetensors")),
                         NameOfFile());

class AtAnotherSize : public ::testing::TestWithParam<std::string> {};

TEST_P(AtAnotherSize, AStepIsThatOfPyTorch) {
  testing::expect_step_of_pytorch(GetParam(), net_of(GetParam()) + ".other.safetensors");
}

INSTANTIATE_TEST_SUITE_P(Files, AtAnotherSize,
                         ::testing::ValuesIn(files_with(".other.safetensors")), NameOfFile());

/// A file says the same, whichever way it was written: only the names of values differ.
TEST(TorchScript, HasTheNamesOfTheExportedProgram) {
  for (const std::string net : {"residual.script.pt", "tied.trace.pt"}) {
    const SafetensorsFile expected(import_file(net_of(net) + ".safetensors"));
    const ImportOptions options{.image = testing::image_of(expected)};
    const ImportedModel one = import_model(import_file(net), options);
    const ImportedModel other = import_model(import_file(net_of(net) + ".pt2"), options);
    EXPECT_EQ(one.graph.nodes().size(), other.graph.nodes().size()) << net;
    EXPECT_EQ(one.graph.parameter_count(), other.graph.parameter_count()) << net;
    EXPECT_EQ(one.graph.cells().size(), other.graph.cells().size()) << net;
    for (const auto& [name, info] : other.state->tensors())
      if (one.state->tensors().contains(name))
        EXPECT_EQ(one.state->tensors().at(name).shape, info.shape) << name;
      else
        EXPECT_EQ(net, "tied.trace.pt") << name << " is missing";  // its constants have no names
    for (const std::string& name : other.carried)
      EXPECT_NE(std::ranges::find(one.carried, name), one.carried.end()) << name;
  }
}

TEST(TorchScript, KeepsWhatIsFrozen) {
  const auto expected = SafetensorsFile(import_file("tied.safetensors"));
  const ImportOptions options{.image = testing::image_of(expected)};
  const auto frozen = [&](const std::string& file) {
    std::set<std::string> names;
    const ImportedModel model = import_model(import_file(file), options);
    for (const Node& node : model.graph.nodes())
      for (const Parameter& parameter : node.parameters)
        if (parameter.kind == ParameterKind::frozen &&
            model.state->tensors().contains(parameter.name))
          names.insert(parameter.name);
    std::erase_if(names, [](const std::string& name) { return name.find("constant") == 0; });
    return names;
  };
  EXPECT_FALSE(frozen("tied.trace.pt").empty());
  for (const std::string& name : frozen("tied.trace.pt"))
    EXPECT_TRUE(frozen("tied.pt2").contains(name)) << name;
}

std::string refusal(const std::string& file) {
  try {
    import_model(import_file(file), {.image = {19, 17}});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "it was imported";
}

TEST(TorchScript, RefusesWhatIsFrozenOrNoTorchScript) {
  EXPECT_NE(refusal("frozen.refused.pt").find("torch.jit.freeze has made constants"),
            std::string::npos)
      << refusal("frozen.refused.pt");
}

}  // namespace
}  // namespace mpi4dl
