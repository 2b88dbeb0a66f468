// Files that are to be refused are, by sentences that name what is wrong
// (tests/data/import/refused.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "import/imported_model.hpp"
#include "support/import_files.hpp"

namespace mpi4dl {
namespace {

nlohmann::json reasons() {
  return nlohmann::json::parse(std::ifstream(import_file("refused.json")));
}

std::vector<std::string> refused_files() {
  std::vector<std::string> files;
  const nlohmann::json all = reasons();  // which items() refers to
  for (const auto& [file, reason] : all.items())
    if (file.ends_with(".pt2")) files.push_back(file);
  return files;
}

class Refused : public ::testing::TestWithParam<std::string> {};

TEST_P(Refused, ItsSentencesNameWhatIsWrong) {
  const nlohmann::json reason = reasons().at(GetParam());
  const std::string path = import_file(GetParam());
  try {
    const Extents image = reason.value("image_size", exported_image_size(path));
    import_model(path, {.image = image});
    FAIL() << "it was imported, although " << reason.at("reason");
  } catch (const UsageError& error) {
    const std::string said = error.what();
    for (const std::string mention : reason.at("mentions"))
      EXPECT_NE(said.find(mention), std::string::npos) << mention << " is not in: " << said;
  }
}

std::string refusal(const std::string& file) {
  const std::string path = import_file(file);
  try {
    import_model(path, {.image = exported_image_size(path)});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "it was imported";
}

TEST(Refusals, NameAllUnknownOperatorsWithTheirPlaces) {
  const std::string said = refusal("unknown_operators.refused.pt2");
  const std::string part =
      "aten.cumsum in the model itself (refused.py:21), 2 times: it is not known";
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Files, Refused, ::testing::ValuesIn(refused_files()),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

}  // namespace
}  // namespace mpi4dl
