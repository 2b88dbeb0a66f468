#include "small_import.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "graph/text.hpp"
#include "import/imported_model.hpp"
#include "support/scratch_folder.hpp"

namespace mpi4dl::testing {

std::string imported(const SmallProgram& program, const Extents& image) {
  const ScratchFolder scratch;
  const std::string path = scratch / "net.pt2";
  std::ofstream(path, std::ios::binary) << file_of(program);
  try {
    return to_text(import_model(path, {.image = image}).graph);
  } catch (const UsageError& error) {
    return error.what();
  }
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}
void expect_lacks(const std::string& text, const std::string& part) {
  EXPECT_EQ(text.find(part), std::string::npos) << part << " is in: " << text;
}
void expect_imported(const std::string& text) {
  expect_lacks(text, "cannot be imported");
}

std::string ints(const std::string& list) {
  return as("ints", "[" + list + "]");
}
std::string whole(int64_t value) {
  return as("int", std::to_string(value));
}
std::string flag(bool value) {
  return as("bool", value ? "true" : "false");
}

}  // namespace mpi4dl::testing
